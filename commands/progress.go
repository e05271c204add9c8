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

// cells is the length of a bar.
const cells = 20

// A bar shows on a terminal's standard error how far long work has come, and, where
// that is not known, that it goes on. It is drawn only after patience, drawn again
// by itself, and removed when the work ends. Its methods may be called from several
// goroutines, and all but enter and advance on nil.
type bar struct {
	in    *invocation
	width int

	mu          sync.Mutex
	timer       *time.Timer
	begun       time.Time // zero: no work yet
	stage       string
	done, total int64
	heard       time.Time // when enter or advance was last called
	drawn       time.Time // when it was last drawn, zero: not on the screen
	resting     bool      // nothing is drawn until work is heard of again
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
	b.hear()
	b.draw()
}

// advance reports work within the stage; total is 0 when it is not known.
func (b *bar) advance(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
	b.hear()
	if b.heard.Sub(b.drawn) >= redrawAfter {
		b.draw()
	}
}

// hear notes that there is work. mu is held.
func (b *bar) hear() {
	b.heard = b.in.env.Now()
	if b.begun.IsZero() || b.resting {
		b.resting = false
		if b.begun.IsZero() {
			b.begun = b.heard
		}
		b.wake(patience)
	}
}

// wake has the bar drawn again after a while. mu is held.
func (b *bar) wake(after time.Duration) {
	switch {
	case b.closed:
	case b.timer == nil:
		b.timer = time.AfterFunc(after, b.tick)
	default:
		b.timer.Reset(after)
	}
}

func (b *bar) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.resting {
		return
	}
	if b.in.env.Now().Sub(b.drawn) >= redrawAfter {
		b.draw()
	}
	b.wake(redrawAfter)
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
	case b.total > 0 && (b.done < b.total || b.drawn.Sub(b.heard) < patience):
		part := min(cells, int(b.done*cells/b.total))
		right = fmt.Sprintf(" [%s%s] %3d%%", strings.Repeat("=", part), strings.Repeat(" ", cells-part), min(100, b.done*100/b.total))
	case b.total == 0 && b.done > 0:
		right = " " + b.moving() + " " + byteSize(b.done)
	default:
		right = " " + b.moving()
	}
	return render.Cut(render.Text(b.stage), room-1-render.Width(right)) + right
}

// moving is a bar without a measure: a mark that goes to and fro with the time.
func (b *bar) moving() string {
	const mark = "==="
	const way = cells - len(mark)
	at := int(b.drawn.Sub(b.begun)/redrawAfter) % (2 * way)
	if at > way {
		at = 2*way - at
	}
	return "[" + strings.Repeat(" ", at) + mark + strings.Repeat(" ", way-at) + "]"
}

// aside takes the bar off the screen while write writes a line of text.
func (b *bar) aside(write func()) {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.erase()
	}
	write()
}

// rest takes the bar off the screen until there is work again: for results and
// questions.
func (b *bar) rest() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.resting = true
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
