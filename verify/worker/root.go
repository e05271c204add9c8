package worker

import (
	"cmp"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/switchyard-plugins/switchyard/verify"
)

// publicGood is the trusted root of Sigstore's public instance, as published with
// its TUF repository (Apache-2.0). It is data: a newer one is given by file.
//
//go:embed trustedroot/public-good.json
var publicGood []byte

// describeRoot says what stands in a trusted root, or in the one that is shipped. One by
// which nothing could ever be proved is refused.
func describeRoot(document []byte) (*verify.TrustedRootFacts, error) {
	trusted, sum, err := trustedRoot(document)
	if err != nil {
		return nil, err
	}
	f := &verify.TrustedRootFacts{Digest: sum, Authorities: []verify.TrustedKey{}, Timestamps: []verify.TrustedKey{},
		Logs: trustedLogs(trusted.RekorLogs()), CTLogs: trustedLogs(trusted.CTLogs())}
	for _, one := range trusted.FulcioCertificateAuthorities() {
		if a, ok := one.(*root.FulcioCertificateAuthority); ok {
			f.Authorities = append(f.Authorities, trustedAuthority(a.URI, a.Root, a.ValidityPeriodStart, a.ValidityPeriodEnd))
		}
	}
	for _, one := range trusted.TimestampingAuthorities() {
		if a, ok := one.(*root.SigstoreTimestampingAuthority); ok {
			f.Timestamps = append(f.Timestamps, trustedAuthority(a.URI, a.Root, a.ValidityPeriodStart, a.ValidityPeriodEnd))
		}
	}
	if len(f.Authorities) == 0 || len(f.Logs)+len(f.Timestamps) == 0 {
		return nil, refuse(verify.CodeRootMalformed, "the trusted root names %d certificate authorities, %d transparency logs and %d timestamp authorities: "+
			"no signature under a certificate could be proved by it", len(f.Authorities), len(f.Logs), len(f.Timestamps))
	}
	return f, nil
}

func trustedAuthority(url string, certificate *x509.Certificate, from, until time.Time) verify.TrustedKey {
	k := verify.TrustedKey{URL: url, From: from, Until: until}
	if certificate != nil {
		k.Name = certificate.Subject.String()
	}
	return k
}

// trustedLogs returns logs from the oldest to the newest.
func trustedLogs(logs map[string]*root.TransparencyLog) []verify.TrustedKey {
	out := make([]verify.TrustedKey, 0, len(logs))
	for _, l := range logs {
		out = append(out, verify.TrustedKey{URL: l.BaseURL, Name: hex.EncodeToString(l.ID), From: l.ValidityPeriodStart, Until: l.ValidityPeriodEnd})
	}
	slices.SortFunc(out, func(a, b verify.TrustedKey) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Name, b.Name)) })
	return out
}
