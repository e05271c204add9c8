package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A pair is two ways of doing the same work, measured in turns, so that what the
// machine does meanwhile falls on both.
type pair struct {
	name  string
	limit float64 // the ratio ours/theirs that is promised; 0: none is
	// more, if set, is what ours may take longer: the pair is told and judged by the
	// difference, and not by the ratio.
	more  time.Duration
	runs  int
	ours  func() error
	other func() error
	// before, if set, prepares each run of either and is not measured.
	before func() error
	// begin, if set, starts what both sides need for all their runs, sets ours and other,
	// and returns what ends it.
	begin  func(*pair) (end func() error, err error)
	skip   string // why the pair cannot be measured here; "" if it can
	ourUse string // what is run, for the table
	vs     string
}

// A row is what a pair came to: medians, the ratio of the medians, and the median of
// the differences run by run.
type row struct {
	pair
	our, their time.Duration
	ratio      float64
	low, high  float64 // quartiles of the ratio run by run
	longer     time.Duration
	least      time.Duration // quartiles of the difference run by run
	most       time.Duration
}

func (r row) missed() bool {
	return r.skip == "" && r.beyond()
}

func (r row) beyond() bool {
	return r.limit > 0 && r.ratio > r.limit || r.more > 0 && r.longer >= r.more
}

// measure runs both ways in turns: ours first in every other round, one round to
// warm up.
func measure(p pair) (r row, err error) {
	if p.skip != "" {
		return row{pair: p}, nil
	}
	if p.begin != nil {
		end, err := p.begin(&p)
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", p.name, err)
		}
		defer func() {
			if ended := end(); err == nil && ended != nil {
				err = fmt.Errorf("%s: %w", p.name, ended)
			}
		}()
	}
	var ours, others, longer []time.Duration
	var ratios []float64
	for i := range p.runs + 1 {
		a, b := p.ours, p.other
		if i%2 == 1 {
			a, b = b, a
		}
		ta, err := timed(p, a)
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", p.name, err)
		}
		tb, err := timed(p, b)
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", p.name, err)
		}
		if i%2 == 1 {
			ta, tb = tb, ta
		}
		if i == 0 {
			continue
		}
		ours, others, ratios = append(ours, ta), append(others, tb), append(ratios, float64(ta)/float64(tb))
		longer = append(longer, ta-tb)
	}
	slices.Sort(ours)
	slices.Sort(others)
	slices.Sort(ratios)
	slices.Sort(longer)
	r = row{pair: p, our: ours[len(ours)/2], their: others[len(others)/2],
		low: ratios[len(ratios)/4], high: ratios[len(ratios)*3/4],
		longer: longer[len(longer)/2], least: longer[len(longer)/4], most: longer[len(longer)*3/4]}
	r.ratio = float64(r.our) / float64(r.their)
	return r, nil
}

func timed(p pair, run func() error) (time.Duration, error) {
	if p.before != nil {
		if err := p.before(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := run()
	return time.Since(start), err
}

// print writes the table in Markdown, as docs/performance.md holds it.
func print(w io.Writer, rows []row) {
	fmt.Fprintf(w, "| measured | against | ours | theirs | ratio | quartiles | promised |  |\n")
	fmt.Fprintf(w, "| --- | --- | ---: | ---: | ---: | --- | ---: | --- |\n")
	for _, r := range rows {
		if r.skip != "" {
			fmt.Fprintf(w, "| %s | %s | | | | | ≤ %.2f | SKIPPED: %s |\n", r.ourUse, r.vs, r.limit, r.skip)
			continue
		}
		ratio, quartiles := fmt.Sprintf("%.2f", r.ratio), fmt.Sprintf("%.2f–%.2f", r.low, r.high)
		promised, verdict := "", ""
		switch {
		case r.more > 0:
			ratio, quartiles = signed(r.longer), signed(r.least)+" to "+signed(r.most)
			promised, verdict = fmt.Sprintf("< %g ms", float64(r.more)/float64(time.Millisecond)), "ok"
		case r.limit > 0:
			promised, verdict = fmt.Sprintf("≤ %.2f", r.limit), "ok"
		}
		if r.missed() {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.ourUse, r.vs,
			milliseconds(r.our), milliseconds(r.their), ratio, quartiles, promised, verdict)
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

// signed is a difference.
func signed(d time.Duration) string {
	return fmt.Sprintf("%+.2f ms", float64(d.Microseconds())/1000)
}
