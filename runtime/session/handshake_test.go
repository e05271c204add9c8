package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// synctestOpen opens a session with a plugin that greets for itself.
func synctestOpen(t *testing.T, opts Options, plugin func(*scripted), host func(*testing.T, *Client, error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn, far := connection()
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer far.Close()
			plugin(newScripted(t, far))
		}()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := Open(ctx, conn, opts)
		host(t, c, err)
		if c != nil {
			c.Close()
		}
		<-over
	})
}

// Each wrong helloAck is refused with its own code; the plugin is told, where the fault
// is one of rules.
func TestHelloAck(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*wire.HelloAck)
		code, rule wire.Code
	}{
		"another plugin":    {func(a *wire.HelloAck) { a.Plugin.PluginID = "com.example.other" }, wire.CodeIdentityMismatch, wire.CodeIdentityMismatch},
		"another publisher": {func(a *wire.HelloAck) { a.Plugin.PublisherID = "org.other" }, wire.CodeIdentityMismatch, wire.CodeIdentityMismatch},
		"another version":   {func(a *wire.HelloAck) { a.Plugin.PackageVersion = "1.0.1" }, wire.CodeIdentityMismatch, wire.CodeIdentityMismatch},
		"another manifest":  {func(a *wire.HelloAck) { a.ManifestDigest = "sha256:" + reviewed[8:] + "0" }, wire.CodeIdentityMismatch, wire.CodeIdentityMismatch},
		"a needless downgrade": {func(a *wire.HelloAck) {
			a.ProtocolVersion.Minor, a.EnabledFeatures = 1, []wire.Feature{wire.FlowCredit}
		}, wire.CodeUnsupportedProtocol, wire.CodeUnsupportedProtocol},
		"an unknown version":  {func(a *wire.HelloAck) { a.ProtocolVersion.Minor = 3 }, wire.CodeUnsupportedProtocol, wire.CodeUnsupportedProtocol},
		"another major":       {func(a *wire.HelloAck) { a.ProtocolVersion.Major = 2 }, wire.CodeUnsupportedProtocol, wire.CodeUnsupportedProtocol},
		"a codec not offered": {func(a *wire.HelloAck) { a.Codec = "cbor" }, wire.CodePluginMalformed, wire.CodeStateViolation},
		"larger frames":       {func(a *wire.HelloAck) { a.MaxFrameBytes++ }, wire.CodePluginMalformed, wire.CodeStateViolation},
		"a feature not declared": {func(a *wire.HelloAck) {
			a.EnabledFeatures = append(slices.Clone(a.EnabledFeatures), wire.ReceiptSignature)
		}, wire.CodePluginMalformed, wire.CodeStateViolation},
		"a feature unknown":     {func(a *wire.HelloAck) { a.EnabledFeatures = append(slices.Clone(a.EnabledFeatures), "time.travel.v1") }, wire.CodePluginMalformed, wire.CodeStateViolation},
		"a requirement unknown": {func(a *wire.HelloAck) { a.Requires = []wire.Feature{"time.travel.v1"} }, wire.CodeMissingRequiredFeature, wire.CodeMissingRequiredFeature},
		"a need left off":       {func(a *wire.HelloAck) { a.EnabledFeatures = []wire.Feature{wire.Cancel} }, wire.CodeMissingRequiredFeature, wire.CodeMissingRequiredFeature},
	} {
		t.Run(name, func(t *testing.T) {
			synctestOpen(t, testOptions(), func(p *scripted) {
				ack := p.ack()
				test.change(ack)
				p.send(ack, p.next(wire.TypeHello))
				told := decode[wire.Error](p.t, p.next(wire.TypeError))
				if told.Code != test.rule || told.Severity != wire.SeverityFatal || told.RequestID.Set {
					p.t.Errorf("told %+v", told)
				}
				p.drain()
			}, func(t *testing.T, c *Client, err error) {
				faultOf(t, err, test.code, test.rule)
			})
		})
	}
}

func TestInitAck(t *testing.T) {
	for name, change := range map[string]func(*wire.InitAck){
		"one more": func(a *wire.InitAck) {
			a.Capabilities = append(a.Capabilities, wire.Capability{ID: "more", Version: "1.0.0"})
		},
		"none":              func(a *wire.InitAck) { a.Capabilities = []wire.Capability{} },
		"another version":   func(a *wire.InitAck) { a.Capabilities[0].Version = "1.1.0" },
		"an operation less": func(a *wire.InitAck) { a.Capabilities[0].Operations = a.Capabilities[0].Operations[1:] },
		"another operation version": func(a *wire.InitAck) {
			ops := slices.Clone(a.Capabilities[0].Operations)
			ops[0].OperationVersion = "1.1"
			a.Capabilities[0].Operations = ops
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctestOpen(t, testOptions(), func(p *scripted) {
				p.send(p.ack(), p.next(wire.TypeHello))
				ack := &wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}
				change(ack)
				p.send(ack, p.next(wire.TypeInit))
				p.drain()
			}, func(t *testing.T, c *Client, err error) {
				faultOf(t, err, wire.CodeIdentityMismatch, wire.CodeIdentityMismatch)
			})
		})
	}
}

// What init tells: the grants, the settings and their digest, the limits, the classes.
func TestInit(t *testing.T) {
	opts := testOptions()
	opts.Settings = []byte(`{"b":1,"a":2}`)
	opts.Grants = []wire.Grant{{PermissionsGrantID: "g1", PermissionID: "files", Scope: "filesystem.read"}}
	want, err := wire.Digest(opts.Settings)
	if err != nil {
		t.Fatal(err)
	}
	synctestOpen(t, opts, func(p *scripted) {
		p.send(p.ack(), p.next(wire.TypeHello))
		g := p.next(wire.TypeInit)
		init := decode[wire.Init](p.t, g)
		if init.InstanceID != "test" || string(init.Settings) != string(opts.Settings) || init.SettingsDigest != want ||
			len(init.Grants) != 1 || init.Grants[0] != opts.Grants[0] || init.Limits.MaxInFlight != DefaultMaxInFlight || len(init.AcceptedClasses) != 2 {
			p.t.Errorf("%+v", init)
		}
		p.send(&wire.InitAck{Status: wire.InitDegraded, Message: "no disk", Capabilities: testPeer().Capabilities}, g)
		p.drain()
	}, func(t *testing.T, c *Client, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if status, message := c.Start(); status != wire.InitDegraded || message != "no disk" || c.Lifecycle() != wire.LifecycleDegraded || c.State() != wire.ConnectionReady {
			t.Fatal(status, message, c.Lifecycle(), c.State())
		}
	})
}

// A manifest that ends at 1.1 is spoken to in 1.1, with the features of that.
func TestDowngrade(t *testing.T) {
	opts := testOptions()
	opts.Peer.Protocol.Max.Minor = 1
	synctestOpen(t, opts, func(p *scripted) {
		hello := p.next(wire.TypeHello)
		p.version.Minor = 1
		ack := p.ack()
		ack.EnabledFeatures = []wire.Feature{wire.Cancel, wire.Progress, wire.FlowCredit}
		p.send(ack, hello)
		p.send(&wire.InitAck{Status: wire.InitReady, Capabilities: testPeer().Capabilities}, p.next(wire.TypeInit))
		g, r := p.request()
		if g.Version.Minor != 1 {
			p.t.Errorf("version %s", g.Version)
		}
		p.answer(g, r, `{}`)
		p.drain()
	}, func(t *testing.T, c *Client, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := do(t, c, echo(`{}`)).Result(); err != nil {
			t.Fatal(err)
		}
	})
}

// A manifest whose promises no common version can keep is refused before anything is sent.
func TestNoCommonVersion(t *testing.T) {
	for name, r := range map[string]wire.VersionRange{
		"too old to stream": {Min: wire.Version{Major: 1}, Max: wire.Version{Major: 1}},
		"another major":     {Min: wire.Version{Major: 2}, Max: wire.Version{Major: 2, Minor: 1}},
	} {
		opts := testOptions()
		opts.Peer.Protocol = r
		synctestOpen(t, opts, func(p *scripted) { p.drain() }, func(t *testing.T, c *Client, err error) {
			var f *Fault
			if !errors.As(err, &f) || f.Code != wire.CodeUnsupportedProtocol {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The plugin refuses hello or init with an error, fatal or not.
func TestRefusedHandshake(t *testing.T) {
	for _, at := range []wire.MessageType{wire.TypeHello, wire.TypeInit} {
		for _, severity := range []wire.Severity{wire.SeverityError, wire.SeverityFatal} {
			synctestOpen(t, testOptions(), func(p *scripted) {
				g := p.next(wire.TypeHello)
				if at == wire.TypeInit {
					p.send(p.ack(), g)
					g = p.next(wire.TypeInit)
				}
				p.send(&wire.Error{Code: wire.CodeInvalidArgument, Message: "not like this", BlameDomain: wire.BlameHost, Severity: severity}, g)
				p.drain()
			}, func(t *testing.T, c *Client, err error) {
				var f *Fault
				if !errors.As(err, &f) || f.Code != wire.CodeInvalidArgument || f.Sent == nil || f.Sent.Message != "not like this" {
					t.Errorf("%s %s: %v", at, severity, err)
				}
			})
		}
	}
}

func TestHandshakeThatNeverEnds(t *testing.T) {
	synctestOpen(t, testOptions(), func(p *scripted) { p.drain() }, func(t *testing.T, c *Client, err error) {
		faultOf(t, err, wire.CodePluginTimeout, "")
	})
	synctestOpen(t, testOptions(), func(p *scripted) {
		p.send(p.ack(), p.next(wire.TypeHello))
		p.drain()
	}, func(t *testing.T, c *Client, err error) {
		if f := faultOf(t, err, wire.CodePluginTimeout, ""); f.Message != wire.TypeInit {
			t.Fatal(f)
		}
	})
}

func TestExitWhileInitializing(t *testing.T) {
	synctestOpen(t, testOptions(), func(p *scripted) { p.next(wire.TypeHello) }, func(t *testing.T, c *Client, err error) {
		faultOf(t, err, wire.CodePluginCrashed, "")
	})
}
