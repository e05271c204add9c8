package commands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/receipt"
)

// receiptData is this host's copy of one receipt.
type receiptData struct {
	ID             string    `json:"id" doc:"The receipt's id."`
	Plugin         string    `json:"plugin" doc:"The plugin's id."`
	Version        string    `json:"version" doc:"The package's version."`
	Operation      string    `json:"operation" doc:"CAPABILITY/OPERATION."`
	OperationID    string    `json:"operationId" doc:"The operation's id."`
	IdempotencyKey string    `json:"idempotencyKey" doc:"The key that was given, else empty."`
	Execution      string    `json:"executionState" doc:"How the operation ended." enum:"completed|failed|cancelled|abandoned"`
	Effect         string    `json:"effectState" doc:"What it did outside." enum:"none|committed|partial|rolled_back|unknown"`
	IssuedAt       time.Time `json:"issuedAt" doc:"When it was issued."`
	ExpiresAt      time.Time `json:"expiresAt" doc:"Until when its key is deduplicated."`
	ByHost         bool      `json:"byHost" doc:"Whether this host made it, for an operation whose process ended before it could."`
}

func newReceiptData(r state.Receipt) receiptData {
	return receiptData{ID: r.ID, Plugin: r.PluginID, Version: r.Version, Operation: r.Action, OperationID: r.OperationID, IdempotencyKey: r.Key,
		Execution: r.Execution, Effect: r.Effect, IssuedAt: r.IssuedAt, ExpiresAt: r.ExpiresAt, ByHost: r.Own}
}

type receiptsListData struct {
	Receipts []receiptData `json:"receipts" doc:"The newest first."`
}

func receiptsListCommand(in *invocation) *cli.Command {
	var limit int
	return &cli.Command{
		ArgsUsage:   "[NAME]",
		Description: "Lists the newest receipts that this host keeps of a session plugin's operations, or of all: how each ended, and what it did outside.",
		UsageText:   "switchyard receipts list\nswitchyard receipts list org.example.words --limit 5 --json",
		Flags:       flags{limitFlag(&limit, 20, "receipts")},
		Action: func(c *cli.Context) error {
			if err := in.limited(limit); err != nil {
				return err
			}
			h, id, err := in.homeAndID(c)
			if err != nil {
				return err
			}
			list, err := h.Receipts(in.context(), id, limit)
			if err != nil {
				return err
			}
			data := receiptsListData{}
			for _, r := range list {
				data.Receipts = append(data.Receipts, newReceiptData(r))
			}
			in.show(data, func(p *page) {
				if len(list) == 0 {
					in.note("No receipts are kept.")
					return
				}
				t := render.Table{Columns: []render.Column{{Title: "ID", Fixed: true}, {Title: "STATE", Wrap: true}, {Title: "EFFECT", Wrap: true}, {Title: "ISSUED", Fixed: true}, {Title: "OPERATION", Wrap: true}}}
				for _, r := range list {
					t.Rows = append(t.Rows, []string{r.ID, r.Execution, r.Effect, p.shortMoment(r.IssuedAt, in.env.Now()), r.PluginID + " " + r.Action})
				}
				p.table(t)
			})
			return nil
		},
	}
}

type receiptsShowData struct {
	receiptData
	Document jsontext.Value `json:"document" doc:"The receipt with this host's signature: {receipt, keyId, signature}."`
}

func receiptsShowCommand(in *invocation) *cli.Command {
	var document bool
	return &cli.Command{
		ArgsUsage: "ID",
		Description: "Shows one receipt, by its id or its operation's. --document prints it alone, with this host's signature, as it is to be given to others: they " +
			"verify it with `switchyard receipts verify` and the file keys/receipts.pub of this data directory.",
		UsageText: "switchyard receipts show 0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19\nswitchyard receipts show --document 0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19",
		Flags:     flags{&cli.BoolFlag{Name: "document", Destination: &document, Usage: "print the signed receipt and nothing else"}},
		Action: func(c *cli.Context) error {
			h, id, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			r, err := h.Receipt(in.context(), id)
			if err != nil {
				return err
			}
			data := receiptsShowData{newReceiptData(r), r.Document}
			in.show(data, func(p *page) {
				if document {
					p.document(r.Document)
					return
				}
				p.title("Receipt " + r.ID)
				p.field("plugin", "%s %s", r.PluginID, r.Version)
				p.field("operation", "%s", r.Action)
				p.field("operation id", "%s", r.OperationID)
				if r.Key != "" {
					p.field("key", "%s", r.Key)
				}
				p.field("state", "%s", r.Execution)
				p.field("effect", "%s", r.Effect)
				p.field("issued", "%s", r.IssuedAt.UTC().Format(time.RFC3339))
				p.field("expires", "%s", r.ExpiresAt.UTC().Format(time.RFC3339))
				if r.Own {
					p.field("made by", "this host: the plugin's process ended before it could")
				}
			})
			return nil
		},
	}
}

type receiptsVerifyData struct {
	ID          string `json:"id" doc:"The receipt's id."`
	Plugin      string `json:"plugin" doc:"The plugin's id."`
	Operation   string `json:"operation" doc:"CAPABILITY/OPERATION."`
	OperationID string `json:"operationId" doc:"The operation's id."`
	Execution   string `json:"executionState" doc:"How the operation ended."`
	Effect      string `json:"effectState" doc:"What it did outside."`
	KeyID       string `json:"keyId" doc:"The key that signed it."`
}

// A receiptRefused says that a signed receipt proves nothing.
type receiptRefused struct {
	file, key string
	keyID     string // of key
	err       error  // of receipt.Verify
}

func (e *receiptRefused) Error() string { return e.file + ": " + e.err.Error() }

func (e *receiptRefused) Unwrap() error { return e.err }

// receiptFailure tells it so that it is not overlooked.
func (in *invocation) receiptFailure(e *receiptRefused, f *failure) {
	f.exit, f.message, f.hint = exitEvidence, e.Error(), in.next("help", "receipts", "verify")
	causes := []string{"the file is no document of `switchyard receipts show --document`, or was cut short", "the receipt alone was kept, without its signature"}
	f.code = "receipt.malformed"
	switch {
	case errors.Is(e.err, receipt.ErrSignature):
		f.code = "receipt.signature"
		causes = []string{"the receipt was changed after it was signed", "a program on its way wrote its numbers or texts in another form"}
	case errors.Is(e.err, receipt.ErrOtherKey):
		f.code = "receipt.other_key"
		causes = []string{"the public key is that of another host, or of another data directory", "the signer's key was replaced since"}
	}
	f.block = &block{title: "RECEIPT REFUSED", causes: causes, facts: [][2]string{{"what", e.err.Error()}, {"where", e.file}, {"key", e.key}, {"key id", e.keyID}}}
}

func receiptsVerifyCommand(in *invocation) *cli.Command {
	var key string
	return &cli.Command{
		ArgsUsage: "FILE",
		Description: "Verifies a signed receipt, as `switchyard receipts show --document` prints it, with the public key of the host that signed it. Nothing else is needed: " +
			"no data directory, no plugin, no network. Without --key the key of this host is taken.",
		UsageText: "switchyard receipts verify receipt.json --key their-receipts.pub",
		Flags:     flags{&cli.StringFlag{Name: "key", Destination: &key, Usage: "the public key, PEM, in `FILE`"}},
		Action: func(c *cli.Context) error {
			file, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			document, err := in.file(file, receipt.MaxDocument)
			if err != nil {
				return err
			}
			given := key != ""
			if !given {
				dir, err := in.dataDir()
				if err != nil {
					return err
				}
				key = filepath.Join(dir, runtime.KeysDir, receipt.PublicFile)
			}
			raw, err := in.file(key, receipt.MaxDocument)
			var none *pkgmgr.NotFound
			if errors.As(err, &none) && !given {
				return in.usage("this host has signed no receipt, so its key verifies none: name the file with the signer's public key by --key")
			}
			if err != nil {
				return err
			}
			public, err := receipt.ReadPublic(raw)
			if err != nil {
				return in.usage("%s %v", key, err)
			}
			r, err := receipt.Verify(document, public)
			if err != nil {
				return &receiptRefused{file: file, key: key, keyID: receipt.KeyID(public), err: err}
			}
			data := receiptsVerifyData{ID: r.ReceiptID.String(), Plugin: r.PluginID, Operation: r.CapabilityID + "/" + r.OperationName, OperationID: r.OperationID.String(),
				Execution: string(r.ExecutionState), Effect: string(r.EffectState), KeyID: receipt.KeyID(public)}
			in.report(data, func(p *page) {
				p.line("Verified: %s of %s %s, effect %s.", data.Operation, data.Plugin, data.Execution, data.Effect)
				p.field("receipt", "%s", data.ID)
				p.field("signed by", "%s", data.KeyID)
			})
			return nil
		},
	}
}

// file reads a file of at most limit bytes; "-" is standard input.
func (in *invocation) file(path string, limit int) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(in.env.Stdin, int64(limit)+1))
	}
	raw, err := readUpTo(path, limit)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, missingFile(path, err)
}
