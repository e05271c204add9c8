package verify

import (
	"context"
	"fmt"
	"io"
	"time"
)

// MaxChunk bounds one piece of a fetched file, in bytes.
const MaxChunk = 256 << 10

// The codes of refusals of a fetch, beside those of every connection.
const (
	CodeNetworkNotFound Code = "network.not_found" // the server has no such file
	CodeNetworkAddress  Code = "network.address"   // an address that no project may lead to
)

// A FetchRequest asks for one file over https. The answer is any number of chunks and
// then a Fetched.
type FetchRequest struct {
	Network Network `json:"network,omitzero"`
	URL     string  `json:"url"`
	Limit   int64   `json:"limit"` // bytes of the file, from 1; more is CodeNetworkTooLarge
	// Public is for a URL that somebody else than the user named: only addresses of the
	// public internet are connected to, and no proxy is, which would connect to others.
	Public bool `json:"public,omitempty"`
}

// A Fetched ends a fetch.
type Fetched struct {
	Bytes int64 `json:"bytes"` // in all chunks together
}

// FetchTime bounds a whole fetch by the most that it may bring, in bytes: whoever sends
// less than 256 KiB a second for that long is not waited for.
func FetchTime(limit int64) time.Duration {
	return time.Minute + time.Duration(limit>>18)*time.Second
}

// fetchSilence is how long a worker may say nothing during a fetch: longer than it waits
// for a server, so that it can say why it ends.
var fetchSilence = 2 * time.Minute

// Fetch writes a file to w as it comes, at most r.Limit bytes of it: what was written
// counts only if there is no error. The error is a *Refusal if there is no such file or no
// server that may be believed, what w said if it could not be written, else a *Broken. The
// worker's count is not relied on; nothing more is asked of one that sends too much.
func (s *Session) Fetch(ctx context.Context, r FetchRequest, w io.Writer) (*Fetched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := FetchTime(r.Limit) + fetchSilence
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no whole answer within %v", limit))
	defer cancel()
	ctx, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	watch := time.AfterFunc(fetchSilence, func() { silent(fmt.Errorf("nothing was heard for %v", fetchSilence)) })
	defer watch.Stop()
	nonce, err := s.send(ctx, Request{Fetch: &r})
	if err != nil {
		return nil, err
	}
	for got := int64(0); ; {
		answer, err := s.hear(ctx, nonce)
		if err != nil {
			return nil, err
		}
		watch.Reset(fetchSilence)
		switch {
		case answer.Fetched != nil && answer.Chunk == nil && answer.Fetched.Bytes == got:
			return answer.Fetched, nil
		case answer.Fetched != nil || len(answer.Chunk) == 0 || len(answer.Chunk) > MaxChunk:
			return nil, s.giveUp("answered something else", nil)
		case int64(len(answer.Chunk)) > r.Limit-got:
			return nil, s.giveUp(fmt.Sprintf("sent more than the %d bytes that were asked for", r.Limit), nil)
		}
		if _, err := w.Write(answer.Chunk); err != nil {
			s.giveUp("was told to end", err) // the rest would come as answers to other requests
			return nil, err
		}
		got += int64(len(answer.Chunk))
	}
}
