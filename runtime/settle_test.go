package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// TestResultTooLargeToKeep holds that an answer for which a record has no room is
// recorded as what it was, without its result: the operation is not left running.
func TestResultTooLargeToKeep(t *testing.T) {
	request := Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodOperate}}
	db := state.At(t.TempDir())
	if err := db.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		extra int
		kept  bool
	}{{0, true}, {1, false}} {
		r := &running{host: &Host{}, approval: &pkgmgr.Approval{}, req: request}
		answer := &plugin.OperateResult{Status: plugin.Succeeded, Summary: "done"}
		const around = len(`{"status":"succeeded","summary":"done","output":""}`)
		answer.Output = []byte(`"` + strings.Repeat("x", state.MaxResult-around+c.extra) + `"`)
		rec, err := r.success(&Result{Operate: answer})
		if err != nil {
			t.Fatal(err)
		}
		o := rec.Operation
		if o.State != state.Succeeded || o.EffectState != state.EffectCommitted || (o.Result != nil) != c.kept ||
			!strings.HasSuffix(o.Message, "done") || strings.Contains(o.Message, "too large") == c.kept {
			t.Errorf("%d: %d bytes, %s %s, %q", i, len(o.Result), o.State, o.EffectState, o.Message)
		}
		err = db.Update(t.Context(), func(tx *state.Tx) error {
			id := "operation-" + string(rune('a'+i))
			if err := tx.StartOperation(state.Operation{ID: id, PluginID: "x", Action: "a", State: state.Running, StartedAt: time.Now()}); err != nil {
				return err
			}
			return tx.FinishOperation(id, *o)
		})
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}
