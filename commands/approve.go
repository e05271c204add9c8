package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func approveCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]",
		Description: "On a terminal: shows the review, asks whether to trust exactly this package, and asks for each scope. Without a terminal it " +
			"asks nothing, changes nothing and prints the command that does it.",
		UsageText: "switchyard approve repo-facts",
		Action: func(c *cli.Context) error {
			if _, err := in.oneRef(c); err != nil {
				return err
			}
			return in.approve()
		},
	}
}

// errDeclined is what approve ends with when the person says no.
var errDeclined = errors.New("not approved: nothing was changed")

func (in *invocation) approve() error {
	host, lock, err := in.host()
	if err != nil {
		return err
	}
	review, err := in.review(in.subject)
	if err != nil {
		return err
	}
	if !in.interactive() {
		return &unaskedError{
			question: "approve asks questions and there is no terminal to ask on",
			instead:  in.afterReview(in.subject, review),
		}
	}
	if review.Denial != nil {
		return &pkgmgr.Revoked{ID: review.Manifest.ID, Version: review.Manifest.Version, Package: review.Package, Denial: *review.Denial}
	}
	data := in.newReviewData(in.subject, review)
	data.Next = ""
	in.page().review(data)
	if err := in.flushText(); err != nil {
		return &outputError{err}
	}
	ask := &asker{in: in, lines: bufio.NewReader(in.env.Stdin)}
	switch yes, err := ask.yes("Trust exactly this package, " + string(review.Package) + "?"); {
	case err != nil:
		return err
	case !yes:
		return errDeclined
	}
	offer := []manifest.Scope{}
	for _, s := range review.Manifest.RequestedScopes {
		yes, err := ask.yes("Grant " + string(s) + " (" + s.Meaning() + ")?")
		if err != nil {
			return err
		}
		if yes {
			offer = append(offer, s)
		}
	}
	// Trust compares this digest with what stands there now: what was shown is
	// what is trusted.
	ref, err := pkgmgr.ParseRef(in.subject)
	if err != nil {
		return err
	}
	if _, err := host.Home.Trust(in.context(), ref, lock, review.Package); err != nil {
		return err
	}
	before := in.grantsOf(ref, lock)
	e, err := host.Enable(in.context(), ref, lock, offer)
	if err != nil {
		return err
	}
	result := in.newEnableData(e, lock, before)
	in.report(result, func(p *page) { p.enabled(result) })
	return nil
}

// An asker asks a person on the terminal.
type asker struct {
	in    *invocation
	lines *bufio.Reader
}

// yes asks until it is answered; no answer at all is a no. An interrupt is an error,
// and the reading that it left behind ends with the process.
func (a *asker) yes(question string) (bool, error) {
	a.in.bar.rest()
	for {
		a.in.env.DiscardInput()
		a.in.stderr("%s [y/N] ", a.in.style(2).Mark(render.Strong, question))
		type answer struct {
			line string
			err  error
		}
		answers := make(chan answer, 1)
		go func() {
			line, err := a.lines.ReadString('\n')
			answers <- answer{line, err}
		}()
		var got answer
		select {
		case <-a.in.context().Done():
			a.in.stderr("\n")
			return false, fmt.Errorf("%w: nothing was changed", errInterrupted)
		case got = <-answers:
		}
		switch strings.ToLower(strings.TrimSpace(got.line)) {
		case "y", "yes":
			return true, nil
		case "n", "no", "":
			if got.err == io.EOF {
				a.in.stderr("\n")
			}
			return false, nil
		}
		if got.err != nil {
			return false, nil
		}
	}
}
