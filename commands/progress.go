package commands

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// patience is how long work may take before a bar says so.
const patience = 500 * time.Millisecond

// redrawAfter is the least time between two drawings of a bar.
const redrawAfter = 100 * time.Millisecond

// A bar shows on a terminal's standard error how far long work has come. It is
// drawn only after patience and removed when the work ends. Its methods may be
// called from several goroutines.
type bar struct {
	in    *invocation
	width int

	mu          sync.Mutex
	timer       *time.Timer
	begun       time.Time // zero: no work yet
	stage       string
	done, total int64
	drawn       time.Time // when it was last drawn, zero: not on the screen
	closed      bool
}

// newBar returns nil where no bar may be drawn.
func (in *invocation) newBar() *bar {
	if in.globals.json || in.globals.quiet || !in.env.Terminal(2) {
		return nil
	}
	return &bar{in: in, width: in.env.Width()}
}

// enter begins a stage.
func (b *bar) enter(stage string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stage, b.done, b.total = stage, 0, 0
	if b.begun.IsZero() {
		b.begun = b.in.env.Now()
		b.timer = time.AfterFunc(patience, b.tick)
	}
	b.draw()
}

// advance reports work within the stage; total is 0 when it is not known.
func (b *bar) advance(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
	if b.in.env.Now().Sub(b.drawn) >= redrawAfter {
		b.draw()
	}
}

func (b *bar) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw()
}

// draw draws the bar if the work has taken long enough. mu is held.
func (b *bar) draw() {
	at := b.in.env.Now()
	if b.closed || b.begun.IsZero() || at.Sub(b.begun) < patience {
		return
	}
	b.drawn = at
	_, _ = b.in.env.Stderr.Write([]byte("\r\x1b[K" + b.text()))
}

// text is what stands on the line, shorter than it.
func (b *bar) text() string {
	room := b.width
	if room < 20 {
		room = 80
	}
	right := ""
	switch {
	case b.total > 0:
		const cells = 20
		part := min(cells, int(b.done*cells/b.total))
		right = fmt.Sprintf(" [%s%s] %3d%%", strings.Repeat("=", part), strings.Repeat(" ", cells-part), min(100, b.done*100/b.total))
	case b.done > 0:
		right = " " + byteSize(b.done)
	}
	return render.Cut(render.Text(b.stage), room-1-render.Width(right)) + right
}

// clear takes the bar off the screen, for a line of text.
func (b *bar) clear() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

// end takes the bar off the screen for good.
func (b *bar) end() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
}

// erase is clear with mu held.
func (b *bar) erase() {
	if !b.drawn.IsZero() {
		_, _ = b.in.env.Stderr.Write([]byte("\r\x1b[K"))
		b.drawn = time.Time{}
	}
}

// byteSize spells a number of bytes for people: "999 B", "1.5 kB", "20 MB".
func byteSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1000, 0
	for value >= 999.5 && unit < 3 {
		value /= 1000
		unit++
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %cB", value, "kMGT"[unit])
	}
	return fmt.Sprintf("%.0f %cB", value, "kMGT"[unit])
}
