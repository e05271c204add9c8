package commands

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// What details hold, by error code.
type (
	revokedDetails struct {
		ID      string        `json:"id"`
		Version string        `json:"version"`
		Package digest.Digest `json:"package"`
		Denied  string        `json:"denied"`
		Reason  string        `json:"reason"`
		Causes  []string      `json:"causes"`
		List    *listedData   `json:"list,omitzero"` // the entry of a signed list
	}
	integrityDetails struct {
		What     string        `json:"what"`
		Expected digest.Digest `json:"expected"`
		Found    digest.Digest `json:"found"`
		Where    string        `json:"where"`
		Causes   []string      `json:"causes"`
	}
	unsafeDetails struct {
		Archive string   `json:"archive"`
		Entry   string   `json:"entry"`
		Rule    string   `json:"rule"`
		Detail  string   `json:"detail"`
		Causes  []string `json:"causes"`
	}
	malformedDetails struct {
		Where    string        `json:"where"`
		File     string        `json:"file"`
		Rule     string        `json:"rule"`
		Problems []problemData `json:"problems"`
		Causes   []string      `json:"causes"`
	}
	problemData struct {
		Member  string `json:"member"`
		Message string `json:"message"`
	}
	claimedDetails struct {
		ID          string   `json:"id"`
		Directories []string `json:"directories"`
		Causes      []string `json:"causes"`
	}
	unexpectedDetails struct {
		Where         string   `json:"where"`
		WantedID      string   `json:"wantedId"`
		WantedVersion string   `json:"wantedVersion"`
		ID            string   `json:"id"`
		Version       string   `json:"version"`
		Causes        []string `json:"causes"`
	}
	platformDetails struct {
		Where  string   `json:"where"`
		Wanted string   `json:"wanted"`
		Found  string   `json:"found"`
		Causes []string `json:"causes"`
	}
	decisionDetails struct {
		ID      string        `json:"id"`
		Version string        `json:"version"`
		Package digest.Digest `json:"package"`
		Status  string        `json:"status"`
	}
	downgradeDetails struct {
		ID        string `json:"id"`
		Installed string `json:"installed"`
		Offered   string `json:"offered"`
	}
	deniedDetails struct {
		ID      string `json:"id"`
		Scope   string `json:"scope"`
		Project string `json:"project"`
		Lock    string `json:"lock"`
	}
	scopeDetails struct {
		ID        string   `json:"id"`
		Scope     string   `json:"scope"`
		Requested []string `json:"requested"`
	}
	notFoundDetails struct {
		Kind string   `json:"kind"`
		Name string   `json:"name"`
		Near []string `json:"near"`
	}
	ambiguousDetails struct {
		Reference string          `json:"reference"`
		Packages  []digest.Digest `json:"packages"`
	}
	outcomeDetails struct {
		Operation string `json:"operation"`
		Key       string `json:"idempotencyKey"`
		State     string `json:"state"`
		Reason    string `json:"reason"`
	}
	foreignDetails struct {
		Path string `json:"path"`
		ID   string `json:"id"`
	}
	driftDetails struct {
		Lock   string `json:"lock"`
		ID     string `json:"id"`
		What   string `json:"what"`
		Wanted string `json:"wanted"`
		Found  string `json:"found"`
	}
	invalidDetails struct {
		Faults []faultData `json:"faults"`
	}
	faultData struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Message string `json:"message"`
	}
	driftsDetails struct {
		Lock   string         `json:"lock"`
		Drifts []driftDetails `json:"drifts"`
	}
	mergeDetails struct {
		Lock    string       `json:"lock"`
		Changes []lockChange `json:"changes"`
	}
	existsDetails struct {
		Path string `json:"path"`
	}
	faultyDetails struct {
		ID       string   `json:"id"`
		Version  string   `json:"version"`
		Method   string   `json:"method"`
		Field    string   `json:"field"`
		Expected string   `json:"expected"`
		Found    string   `json:"found"`
		Exit     string   `json:"exit"`
		Stderr   []string `json:"stderr"`
	}
	stoppedDetails struct {
		ID        string `json:"id"`
		Operation string `json:"operation"`
	}
	unrecordedDetails struct {
		ID     string `json:"id"`
		Call   string `json:"call"`
		Answer any    `json:"answer"` // what the command prints where all goes well, or null
	}
	busyDetails struct {
		What      string `json:"what"`
		Operation string `json:"operation"`
	}
)

func faultDetails(err error) any {
	d := invalidDetails{Faults: []faultData{}}
	var faults lockfile.Faults
	if errors.As(err, &faults) {
		for _, s := range faults {
			d.Faults = append(d.Faults, faultData{s.File, s.Line, s.Column, s.Message})
		}
	}
	return d
}

// furtherFaults leaves the first fault as the message and returns the others.
func furtherFaults(err error, f *failure) []string {
	var faults lockfile.Faults
	if !errors.As(err, &faults) {
		return nil
	}
	f.message = faults[0].Error()
	more := make([]string, 0, len(faults)-1)
	for _, fault := range faults[1:] {
		more = append(more, fault.Error())
	}
	return more
}
