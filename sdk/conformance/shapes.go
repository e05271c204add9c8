package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shapes describes every body that a program may send. A member is its name, "?"
// if it may be absent, its kind, and "|null" if it may be null. A kind is one of
// shapeKinds, {…} of another shape, [kind] for a list, or a choice of words.
var shapes = lazy[map[string]string]{make: func() map[string]string {
	return map[string]string{
		"helloAck":          "protocolVersion version, enabledFeatures [string], requires [string], codec string, maxFrameBytes count, manifestDigest digest, plugin {identity}, deprecations [{deprecation}]",
		"identity":          "pluginId string, publisherId string, packageVersion string",
		"deprecation":       "element string, deprecatedSince string, sunsetAfter string, replacement? string, behaviorAfterSunset error",
		"initAck":           "status ready/degraded, message? string, capabilities [{capability}]",
		"capability":        "id string, version string, operations [{operation}]",
		"operation":         "name string, operationVersion version",
		"settingsValidated": "valid bool, normalized? any, problems [{problem}]",
		"problem":           "path string, message string",
		"response":          "requestId uuid, operationId uuid, payloadClass public/internal/sensitive/secret/regulated, payload any, receipt? {receipt}",
		"error": "code code, message text, retryable bool, blameDomain caller/host/plugin/transport/environment, severity info/warning/error/fatal, requestId uuid|null, operationId uuid|null, " +
			"details? any, receipt? {receipt}, existingOperationId? uuid, supportedProtocol? {range}, recommendedProtocolVersion? version",
		"range":        "min version, max version",
		"progress":     "requestId uuid, operationId uuid, message text, percentCompleted? percent, current? integer, total? integer",
		"streamItem":   "requestId uuid, operationId uuid, index count, payload any",
		"streamEnd":    "requestId uuid, operationId uuid, itemCount count, byteCount count",
		"flow":         "requestId uuid, creditItems count, creditBytes count",
		"cancelAck":    "requestId uuid",
		"cancelled":    "requestId uuid, operationId uuid, receipt? {receipt}",
		"health":       "status healthy/degraded/unhealthy, message? text, updatedAtUtc time",
		"heartbeat":    "nonce string",
		"heartbeatAck": "nonce string",
		"goAway":       "lastAcceptedSequence count, reason string, graceMs count",
		"receipt": "receiptSchemaVersion urn:switchyard:receipt:1, receiptId uuid, pluginId string, publisherId string, packageVersion string, manifestDigest digest, capabilityId string, " +
			"operationName string, operationVersion version, operationId uuid, idempotencyKey string|null, attempt count, executionState completed/failed/cancelled/in_progress/abandoned, " +
			"effectState none/committed/partial/rolled_back/unknown, startedAtUtc time, issuedAtUtc time, requestDigest digest, resultDigest digest|null, itemCount count, byteCount count, errorCode code|null, expiresAtUtc time",
	}
}}

// features names, for each message that belongs to one, the feature without
// which it must not be sent.
var features = lazy[map[string]string]{make: func() map[string]string {
	return map[string]string{
		"settingsValidated": "settings.validate.v1", "progress": "progress.v1", "streamItem": "flow.credit.v1", "streamEnd": "flow.credit.v1", "flow": "flow.credit.v1",
		"cancelAck": "cancel.v1", "cancelled": "cancel.v1", "heartbeat": "heartbeat.v1", "heartbeatAck": "heartbeat.v1", "receipt": "receipt.v1",
	}
}}

// A field is one member of a shape.
type field struct {
	name, kind         string
	optional, nullable bool
}

var shapeOf = lazy[map[string][]field]{make: func() map[string][]field {
	all := map[string][]field{}
	for name, text := range shapes.get() {
		for part := range strings.SplitSeq(text, ", ") {
			n, kind, _ := strings.Cut(part, " ")
			f := field{name: strings.TrimSuffix(n, "?"), optional: strings.HasSuffix(n, "?")}
			f.kind, f.nullable = strings.CutSuffix(kind, "|null")
			all[name] = append(all[name], f)
		}
	}
	return all
}}

var (
	versionForm = pattern{text: `^\d+\.\d+$`}
	codeForm    = pattern{text: `^[a-z][a-z_]*(\.[a-z_]+)*$`}
)

// checkShape holds a body to its shape and says what is wrong with it.
func checkShape(shape string, text json.RawMessage) error {
	var members map[string]json.RawMessage
	if text == nil || text[0] != '{' || json.Unmarshal(text, &members) != nil {
		return fmt.Errorf("%s is no object", shape)
	}
	fields := shapeOf.get()[shape]
	for name := range members {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return fmt.Errorf("%s has the unknown member %q", shape, name)
		}
	}
	for _, f := range fields {
		value, ok := members[f.name]
		switch {
		case !ok && f.optional:
			continue
		case !ok:
			return fmt.Errorf("%s lacks %s", shape, f.name)
		case string(value) == "null" && f.nullable:
			continue
		}
		if err := checkKind(f.kind, value); err != nil {
			return fmt.Errorf("%s.%s: %w", shape, f.name, err)
		}
	}
	return nil
}

func checkKind(kind string, value json.RawMessage) error {
	if kind == "any" {
		return nil
	}
	if inner, ok := strings.CutPrefix(kind, "["); ok {
		var list []json.RawMessage
		if value[0] != '[' || json.Unmarshal(value, &list) != nil {
			return fmt.Errorf("%s is no list", value)
		}
		for _, v := range list {
			if err := checkKind(strings.TrimSuffix(inner, "]"), v); err != nil {
				return err
			}
		}
		return nil
	}
	if inner, ok := strings.CutPrefix(kind, "{"); ok {
		return checkShape(strings.TrimSuffix(inner, "}"), value)
	}
	var s string
	isString := value[0] == '"' && json.Unmarshal(value, &s) == nil
	ok := false
	switch kind {
	case "bool":
		ok = string(value) == "true" || string(value) == "false"
	case "count", "integer":
		n, err := strconv.ParseInt(string(value), 10, 64)
		ok = err == nil && (n >= 0 || kind == "integer")
	case "percent":
		x, err := strconv.ParseFloat(string(value), 64)
		ok = err == nil && x >= 0 && x <= 100
	case "string":
		ok = isString
	case "text":
		ok = isString && utf8.RuneCountInString(s) <= 4096
	case "uuid":
		ok = uuidForm.get().MatchString(s)
	case "digest":
		ok = digestForm.get().MatchString(s)
	case "time":
		ok = isTime(s)
	case "version":
		ok = versionForm.get().MatchString(s)
	case "code":
		ok = codeForm.get().MatchString(s)
	default:
		ok = isString && slices.Contains(strings.Split(kind, "/"), s)
	}
	if !ok {
		return fmt.Errorf("%.200s is not %s", value, kind)
	}
	return nil
}
