package commands

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/secret"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// classifySession knows what can happen to a session and to its requests.
func (in *invocation) classifySession(err error, f *failure) bool {
	var (
		failed    *runtime.SessionFailed
		said      *wire.Error
		bad       *session.BadRequest
		fault     *session.Fault
		cancelled *session.Cancelled
		up        *session.GivenUp
		none      *runtime.NoInterpreter
		unkept    *runtime.KeyUnkept
		stopped   *runtime.Stopped
		stored    *runtime.StoredSettings
		nothing   *pkgmgr.NoSettings
		misfit    *pkgmgr.SettingsFault
		place     *settings.PlaceError
		lacking   *secret.Unresolved
	)
	if errors.As(err, &stopped) {
		return false // whatever the plugin made of it
	}
	var proves *receiptRefused
	switch {
	case errors.As(err, &proves): // before what is wrong with its form, which may be a fault of the protocol's
		in.receiptFailure(proves, f)
	case errors.As(err, &stored):
		f.exit, f.code, f.message, f.hint = exitUsage, "settings.stored", stored.Error(), in.next("config", "list", stored.ID)
	case errors.As(err, &nothing):
		f.exit, f.code, f.hint = exitUsage, "settings.none", in.next("show", nothing.ID)
	case errors.As(err, &misfit):
		f.exit, f.code, f.message, f.hint = exitUsage, "settings.invalid", misfit.Error(), in.next("config", "list", misfit.ID)
	case errors.As(err, &place):
		f.exit, f.code, f.message = exitUsage, "settings.place", place.Error()
		if errors.Is(err, settings.ErrNoPlace) {
			f.exit = exitNotFound
		}
		if in.subject != "" {
			f.hint = in.next("config", "list", in.subject)
		}
	case errors.As(err, &lacking):
		f.exit, f.code, f.message = exitPlugin, string(wire.CodeSecretUnresolved), lacking.Error()
		if in.subject != "" {
			f.hint = in.next("secrets", "list", in.subject)
		}
	case errors.As(err, &failed):
		f.exit, f.code, f.message = exitPlugin, string(failed.Fault.Code), failed.Error()
		f.hint = in.next("logs", failed.ID)
		f.details = faultyDetails{failed.ID, failed.Version, methodRequest, failed.Fault.Path, "", string(failed.Fault.Rule), failed.Exit.String(), failed.Stderr}
		for _, l := range failed.Stderr {
			f.more = append(f.more, failed.ID+": "+l)
		}
	case errors.As(err, &said):
		f.exit, f.code, f.message = exitOf(said.Code), string(said.Code), "the plugin answered: "+said.Error()
		if said.Receipt != nil {
			f.hint = in.next("receipts", "show", said.Receipt.ReceiptID.String())
		}
		switch {
		case in.subject == "":
		case said.Code == wire.CodeSecretUnresolved:
			f.hint = in.next("help", "secrets", "set")
		case said.Code == wire.CodeDeprecatedSunset:
			f.hint = in.next("review", in.subject) // which names what replaces it
		}
		f.details = answeredDetails{Code: string(said.Code), Retryable: said.Retryable, Blame: string(said.BlameDomain)}
	case errors.As(err, &bad):
		f.exit, f.code, f.message = exitOf(bad.Code), string(bad.Code), err.Error()
		if f.exit == exitPlugin {
			f.exit = exitUsage
		}
	case errors.Is(err, session.ErrDeadline):
		f.exit, f.code, f.message = exitPlugin, string(wire.CodeDeadlineExceeded), err.Error()
	case errors.As(err, &cancelled), errors.As(err, &up):
		f.exit, f.code, f.message = exitInterrupted, "cancelled", err.Error()
		if errors.Is(err, context.Canceled) && !errors.Is(err, pkgmgr.ErrCancelled) {
			f.code = "interrupted"
		}
	case errors.As(err, &fault):
		f.exit, f.code, f.message = exitPlugin, string(fault.Code), fault.Error()
	case errors.As(err, &unkept):
		f.exit, f.code, f.message, f.hint = exitUsage, "idempotency.unkept", err.Error()+"; leave the key out", in.next("actions", unkept.ID)
	case errors.As(err, &none):
		f.exit, f.code = exitPlugin, "plugin.no_interpreter"
	default:
		return false
	}
	return true
}

// answeredDetails is what an error answer says for programs.
type answeredDetails struct {
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
	Blame     string `json:"blameDomain"`
}

// exitOf is the exit class of an error code of the session protocol.
func exitOf(c wire.Code) int {
	switch c {
	case wire.CodeInvalidArgument, wire.CodeSchemaMismatch, wire.CodeSchemaUnknownMember, wire.CodeUnsupportedOperationVersion:
		return exitUsage
	case wire.CodeUnknownOperation, wire.CodeNotFound:
		return exitNotFound
	case wire.CodeFingerprintChanged:
		return exitIntegrity
	case wire.CodeUntrusted:
		return exitDecision
	case wire.CodeRevoked:
		return exitRevoked
	case wire.CodePermissionDenied, wire.CodeGrantExpired, wire.CodeProjectUntrusted, wire.CodePayloadClassDenied:
		return exitPermission
	case wire.CodeConflict:
		return exitBusy
	}
	return exitPlugin
}
