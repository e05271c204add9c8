package plugintest

import (
	"encoding/json"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// The functions of this file read results with exactly the members that the
// protocol gives them. The bytes have passed strict.Check.

func readInitialize(raw []byte, r *plugin.InitializeResult) error {
	return strict.Object(raw,
		strict.Required("protocolVersion", strict.String(&r.ProtocolVersion)),
		strict.Required("plugin", func(value []byte) error {
			p := &r.Plugin
			return strict.Object(value,
				strict.Required("schemaVersion", strict.String(&p.SchemaVersion)),
				strict.Required("id", strict.String(&p.ID)),
				strict.Required("name", strict.String(&p.Name)),
				strict.Required("version", strict.String(&p.Version)),
				strict.Required("protocolVersion", strict.String(&p.ProtocolVersion)),
				strict.Required("capabilities", strict.Strings(&p.Capabilities)),
				strict.Required("requestedScopes", strict.Strings(&p.RequestedScopes)),
			)
		}),
		strict.Required("grantedScopes", strict.Strings(&r.GrantedScopes)),
	)
}

func readHealth(raw []byte, r *plugin.HealthResult) error {
	return strict.Object(raw,
		strict.Required("status", oneOf(&r.Status, plugin.Healthy, plugin.Degraded, plugin.Unhealthy)),
		strict.Optional("message", strict.String(&r.Message)),
		strict.Required("checkedAt", strict.Time(&r.CheckedAt)),
	)
}

func readInspect(raw []byte, r *plugin.InspectResult) error {
	r.Facts, r.Actions = []plugin.Fact{}, []plugin.Action{}
	return strict.Object(raw,
		strict.Required("summary", strict.Text(&r.Summary)),
		strict.Required("facts", strict.List(func(value []byte) error {
			var f plugin.Fact
			err := strict.Object(value,
				strict.Required("id", strict.Text(&f.ID)),
				strict.Required("label", strict.Text(&f.Label)),
				strict.Required("value", strict.String(&f.Value)),
				strict.Required("source", strict.Text(&f.Source)),
				strict.Optional("warning", strict.String(&f.Warning)),
			)
			r.Facts = append(r.Facts, f)
			return err
		})),
		strict.Required("actions", strict.List(func(value []byte) error {
			var a plugin.Action
			err := strict.Object(value,
				strict.Required("id", strict.Text(&a.ID)),
				strict.Required("name", strict.Text(&a.Name)),
				strict.Required("description", strict.Text(&a.Description)),
				strict.Required("risk", strict.Text(&a.Risk)),
			)
			r.Actions = append(r.Actions, a)
			return err
		})),
		strict.Required("warnings", strict.Strings(&r.Warnings)),
		strict.Required("observedAt", strict.Time(&r.ObservedAt)),
	)
}

func readOperate(raw []byte, r *plugin.OperateResult) error {
	return strict.Object(raw,
		strict.Required("status", oneOf(&r.Status, plugin.Succeeded, plugin.PartiallySucceeded, plugin.Failed)),
		strict.Required("summary", strict.Text(&r.Summary)),
		strict.Required("output", strict.Raw(&r.Output)),
	)
}

// oneOf reads one of a closed set of strings.
func oneOf[T ~string](p *T, values ...T) func([]byte) error {
	return func(value []byte) error {
		if err := strict.String(p)(value); err != nil {
			return err
		}
		for _, v := range values {
			if *p == v {
				return nil
			}
		}
		list, err := json.Marshal(values)
		if err != nil {
			return err
		}
		return &strict.MemberError{Message: "must be one of " + string(list)}
	}
}
