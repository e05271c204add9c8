package wire

import (
	"encoding/json"
	"time"
)

// SettingsToValidate asks whether a plugin could work with settings.
type SettingsToValidate struct{ Settings json.RawMessage }

// Type is TypeSettingsValidate.
func (*SettingsToValidate) Type() MessageType { return TypeSettingsValidate }

// AppendJSON implements Body.
func (b *SettingsToValidate) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.raw("settings", b.Settings)
	return w.end()
}

func (*SettingsToValidate) required() []string { return settingsValidateMembers }

var settingsValidateMembers = []string{"settings"}

func (b *SettingsToValidate) member(d *decoder, name []byte) bool {
	if string(name) != "settings" {
		return false
	}
	d.rawObject(&b.Settings)
	return true
}

// SettingsValidated is the answer.
type SettingsValidated struct {
	Valid      bool
	Normalized json.RawMessage // what the plugin would use; nil if it is not valid
	Problems   []SettingsProblem
}

// A SettingsProblem says what is wrong at one place. It quotes no value.
type SettingsProblem struct {
	Path    string // JSON Pointer
	Message string
}

// Type is TypeSettingsValidated.
func (*SettingsValidated) Type() MessageType { return TypeSettingsValidated }

// AppendJSON implements Body.
func (b *SettingsValidated) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.bool("valid", b.Valid)
	if len(b.Normalized) > 0 {
		w.raw("normalized", b.Normalized)
	}
	list(&w, "problems", b.Problems, func(dst []byte, p *SettingsProblem) []byte {
		w := begin(dst)
		w.string("path", p.Path)
		w.string("message", p.Message)
		return w.end()
	})
	return w.end()
}

func (*SettingsValidated) required() []string { return settingsValidatedMembers }

var settingsValidatedMembers = []string{"valid", "problems"}

func (b *SettingsValidated) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "valid":
		d.bool(&b.Valid)
	case "normalized":
		d.rawObject(&b.Normalized)
	case "problems":
		b.Problems = []SettingsProblem{}
		d.list(func() {
			var one SettingsProblem
			d.object(&one)
			b.Problems = append(b.Problems, one)
		})
	default:
		return false
	}
	return true
}

func (*SettingsProblem) required() []string { return problemMembers }

var problemMembers = []string{"path", "message"}

func (p *SettingsProblem) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "path":
		d.string(&p.Path, 0, MaxMessage)
	case "message":
		d.string(&p.Message, 0, MaxMessage)
	default:
		return false
	}
	return true
}

// A HealthCheck asks how a plugin is, once or from now on.
type HealthCheck struct{ Watch bool }

// Type is TypeHealthCheck.
func (*HealthCheck) Type() MessageType { return TypeHealthCheck }

// AppendJSON implements Body.
func (b *HealthCheck) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.bool("watch", b.Watch)
	return w.end()
}

func (*HealthCheck) required() []string { return healthCheckMembers }

var healthCheckMembers = []string{"watch"}

func (b *HealthCheck) member(d *decoder, name []byte) bool {
	if string(name) != "watch" {
		return false
	}
	d.bool(&b.Watch)
	return true
}

// A HealthReport says how a plugin is.
type HealthReport struct {
	Status    HealthStatus
	Message   string // "" for none
	UpdatedAt time.Time
}

// Type is TypeHealth.
func (*HealthReport) Type() MessageType { return TypeHealth }

// AppendJSON implements Body.
func (b *HealthReport) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.string("status", string(b.Status))
	w.optional("message", b.Message)
	w.time("updatedAtUtc", b.UpdatedAt)
	return w.end()
}

func (*HealthReport) required() []string { return healthMembers }

var healthMembers = []string{"status", "updatedAtUtc"}

func (b *HealthReport) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "status":
		oneOf(d, &b.Status, HealthStatuses)
	case "message":
		d.string(&b.Message, 0, MaxMessage)
	case "updatedAtUtc":
		d.time(&b.UpdatedAt)
	default:
		return false
	}
	return true
}

// A Beat asks whether the other side is alive.
type Beat struct{ Nonce string }

// A BeatAck is the answer, with the same nonce.
type BeatAck struct{ Nonce string }

// Type is TypeHeartbeat.
func (*Beat) Type() MessageType { return TypeHeartbeat }

// Type is TypeHeartbeatAck.
func (*BeatAck) Type() MessageType { return TypeHeartbeatAck }

// AppendJSON implements Body.
func (b *Beat) AppendJSON(dst []byte) []byte { return appendNonce(dst, b.Nonce) }

// AppendJSON implements Body.
func (b *BeatAck) AppendJSON(dst []byte) []byte { return appendNonce(dst, b.Nonce) }

func appendNonce(dst []byte, nonce string) []byte {
	w := begin(dst)
	w.string("nonce", nonce)
	return w.end()
}

func (*Beat) required() []string    { return nonceMembers }
func (*BeatAck) required() []string { return nonceMembers }

var nonceMembers = []string{"nonce"}

func (b *Beat) member(d *decoder, name []byte) bool    { return d.nonce(name, &b.Nonce) }
func (b *BeatAck) member(d *decoder, name []byte) bool { return d.nonce(name, &b.Nonce) }

func (d *decoder) nonce(name []byte, p *string) bool {
	if string(name) != "nonce" {
		return false
	}
	d.string(p, 1, 128)
	return true
}

// A GoAway announces the end of a session: what came after LastAcceptedSequence
// has not been looked at.
type GoAway struct {
	LastAcceptedSequence int64 // 0 if nothing was accepted
	Reason               string
	GraceMs              int64
}

// Type is TypeGoAway.
func (*GoAway) Type() MessageType { return TypeGoAway }

// AppendJSON implements Body.
func (b *GoAway) AppendJSON(dst []byte) []byte {
	w := begin(dst)
	w.integer("lastAcceptedSequence", b.LastAcceptedSequence)
	w.string("reason", b.Reason)
	w.integer("graceMs", b.GraceMs)
	return w.end()
}

func (*GoAway) required() []string { return goAwayMembers }

var goAwayMembers = []string{"lastAcceptedSequence", "reason", "graceMs"}

func (b *GoAway) member(d *decoder, name []byte) bool {
	switch string(name) {
	case "lastAcceptedSequence":
		d.integer(&b.LastAcceptedSequence, 0, MaxSafeInteger)
	case "reason":
		d.string(&b.Reason, 0, MaxMessage)
	case "graceMs":
		d.integer(&b.GraceMs, 0, MaxSafeInteger)
	default:
		return false
	}
	return true
}
