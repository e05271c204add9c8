package wire

import "math"

// Credit is what the receiver of a stream allowed its sender and the sender has
// not used: items, and bytes as the frames' lengths N count them. The zero value
// is no credit. It is not safe for concurrent use.
type Credit struct {
	items, bytes int64
	widest       int64 // the most bytes that one grant gave
	overdrawn    bool
}

// Grant adds to the credit. It saturates.
func (c *Credit) Grant(items, bytes int64) {
	c.items, c.bytes = add(c.items, items), add(c.bytes, bytes)
	c.widest = max(c.widest, bytes)
	if c.items >= 0 && c.bytes >= 0 {
		c.overdrawn = false
	}
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Covers reports whether an item whose frame has size bytes may be sent.
func (c *Credit) Covers(size int64) bool { return c.items >= 1 && c.bytes >= size }

// TooLarge reports whether an item whose frame has size bytes is larger than
// every grant so far, so that waiting for credit may be waiting for ever. Before
// the first grant of bytes nothing is.
func (c *Credit) TooLarge(size int64) bool { return c.widest > 0 && size > c.widest }

// Take uses credit for an item to be sent, if it is covered.
func (c *Credit) Take(size int64) bool {
	if !c.Covers(size) {
		return false
	}
	c.items, c.bytes = c.items-1, c.bytes-size
	return true
}

// Receive charges an item that has arrived and reports whether the sender was
// allowed it. One item that the credit does not cover is tolerated, because it
// may have been on its way; the next is not, until grants have made up for it.
func (c *Credit) Receive(size int64) bool {
	covered := c.Covers(size)
	if !covered && c.overdrawn {
		return false
	}
	c.overdrawn = !covered
	c.items, c.bytes = c.items-1, c.bytes-size
	return true
}

// Left returns the items and bytes that remain; they are negative after an item
// that was not covered.
func (c *Credit) Left() (items, bytes int64) { return c.items, c.bytes }
