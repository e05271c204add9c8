package wire

import "slices"

// A Feature is a token that both sides must name before either may use it.
type Feature string

// The features.
const (
	HealthWatch      Feature = "health.watch.v1"
	TransportUnix    Feature = "transport.unix.v1"
	CodecCBOR        Feature = "codec.cbor.v1"
	Cancel           Feature = "cancel.v1"
	Progress         Feature = "progress.v1"
	FlowCredit       Feature = "flow.credit.v1"
	Receipts         Feature = "receipt.v1"
	ReceiptSignature Feature = "receipt.signature.v1"
	Heartbeat        Feature = "heartbeat.v1"
	SecretsInject    Feature = "secrets.inject.v1"
	SettingsValidate Feature = "settings.validate.v1"
)

// A FeatureRule says from which version on a feature exists.
type FeatureRule struct {
	Feature Feature
	Since   Version
}

// Features lists every feature.
var Features = []FeatureRule{
	{HealthWatch, Version{1, 0}},
	{TransportUnix, Version{1, 0}},
	{CodecCBOR, Version{1, 0}},
	{Cancel, Version{1, 1}},
	{Progress, Version{1, 1}},
	{FlowCredit, Version{1, 1}},
	{Receipts, Version{1, 2}},
	{ReceiptSignature, Version{1, 2}},
	{Heartbeat, Version{1, 2}},
	{SecretsInject, Version{1, 2}},
	{SettingsValidate, Version{1, 2}},
}

// Since returns the version from which on f exists. A token that is no feature
// is in no version.
func (f Feature) Since() (v Version, ok bool) {
	for _, r := range Features {
		if r.Feature == f {
			return r.Since, true
		}
	}
	return Version{}, false
}

// In reports whether f exists in v.
func (f Feature) In(v Version) bool {
	since, ok := f.Since()
	return ok && since.Major == v.Major && since.Minor <= v.Minor
}

// FeatureSet is the features that are on for a connection.
type FeatureSet []Feature

// Has reports whether f is on; the empty feature always is.
func (s FeatureSet) Has(f Feature) bool { return f == "" || slices.Contains(s, f) }
