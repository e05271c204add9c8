package plugin

import "time"

// SetWall replaces the clock on the wall.
func SetWall(p *SessionPlugin, wall func() time.Time) { p.wall = wall }
