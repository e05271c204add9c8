package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// childReadOnly expects a data directory that it cannot write: what can be read
// reads, what would change something is refused. It prints "as expected".
func childReadOnly(d *DB, _ []string) error {
	ctx := context.Background()
	err := d.View(ctx, func(tx *Tx) error {
		if _, err := tx.AllSeen(); err != nil {
			return err
		}
		return runLookups(tx, "plugin-001")
	})
	if err != nil {
		return fmt.Errorf("view: %w", err)
	}
	if err := d.Check(ctx); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	ran := func(*Tx) error { return errors.New("ran") }
	for name, err := range map[string]error{
		"update":          d.Update(ctx, ran),
		"ensure":          d.Ensure(ctx),
		"update of empty": At(filepath.Join(d.dir, "empty")).Update(ctx, ran),
		"update below":    At(filepath.Join(d.dir, "absent", "below")).Update(ctx, ran),
	} {
		if !errors.Is(err, ErrReadOnly) {
			return fmt.Errorf("%s: got %v, want ErrReadOnly", name, err)
		}
	}
	if _, err := d.Rebuild(ctx); !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("rebuild: got %v, want ErrReadOnly", err)
	}
	if err := At(filepath.Join(d.dir, "empty")).View(ctx, func(*Tx) error { return nil }); err != nil {
		return fmt.Errorf("view of empty: %w", err)
	}
	err = withMigrations(d, addDefault("x")).View(ctx, ran)
	if !errors.Is(err, ErrOlder) {
		return fmt.Errorf("view of an older format: got %v, want ErrOlder", err)
	}
	fmt.Println("as expected")
	return nil
}
