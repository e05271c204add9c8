package worker

import (
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/verify"
)

// statement reads the two forms of SLSA provenance that builders write; of any other
// only its type is told. Names are read as they are spelled, and one that stands twice
// is refused: nobody else may read another builder there.
func statement(payload string) (*verify.Statement, error) {
	raw, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		return nil, refuse(verify.CodeStatement, "%v", err)
	}
	var s struct {
		PredicateType string         `json:"predicateType"`
		Predicate     jsontext.Value `json:"predicate"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, refuse(verify.CodeStatement, "%v", err)
	}
	out := &verify.Statement{PredicateType: s.PredicateType}
	switch s.PredicateType {
	case "https://slsa.dev/provenance/v0.2":
		err = readSLSA02(s.Predicate, out)
	case "https://slsa.dev/provenance/v1":
		err = readSLSA1(s.Predicate, out)
	}
	if err != nil {
		return nil, refuse(verify.CodeStatement, "%v", err)
	}
	return out, nil
}

func readSLSA02(predicate jsontext.Value, out *verify.Statement) error {
	var p struct {
		Builder    builder    `json:"builder"`
		BuildType  string     `json:"buildType"`
		Materials  []resource `json:"materials"`
		Invocation struct {
			ConfigSource resource `json:"configSource"`
		} `json:"invocation"`
	}
	if err := json.Unmarshal(predicate, &p); err != nil {
		return err
	}
	out.Builder, out.BuildType = p.Builder.ID, p.BuildType
	if out.Source, out.SourceDigest = p.Invocation.ConfigSource.told(); out.Source == "" && len(p.Materials) > 0 {
		out.Source, out.SourceDigest = p.Materials[0].told()
	}
	return nil
}

func readSLSA1(predicate jsontext.Value, out *verify.Statement) error {
	var p struct {
		RunDetails struct {
			Builder builder `json:"builder"`
		} `json:"runDetails"`
		BuildDefinition struct {
			BuildType            string     `json:"buildType"`
			ResolvedDependencies []resource `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
	}
	if err := json.Unmarshal(predicate, &p); err != nil {
		return err
	}
	out.Builder, out.BuildType = p.RunDetails.Builder.ID, p.BuildDefinition.BuildType
	if len(p.BuildDefinition.ResolvedDependencies) > 0 {
		out.Source, out.SourceDigest = p.BuildDefinition.ResolvedDependencies[0].told()
	}
	return nil
}

type builder struct {
	ID string `json:"id"`
}

// A resource is a source as both forms name it.
type resource struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

func (r resource) told() (uri, revision string) {
	for _, algorithm := range []string{"sha256", "gitCommit", "sha1"} {
		if v := r.Digest[algorithm]; v != "" {
			return r.URI, algorithm + ":" + v
		}
	}
	return r.URI, ""
}
