package conformance_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/conformance"
	"github.com/switchyard-plugins/switchyard/sdk/conformance/mutant"
)

// caught names, for each fault of package mutant, the cases or groups of the
// corpus that notice it.
const caught = `
accepts-nothing                 goaway/terminated
acknowledges-no-cancel          cancel/acknowledged-then-cancelled
answers-another-request         messages/valid-request
answers-twice                   cancel/response-wins
answers-with-its-own-version    handshake/downgrade-to-1.1
believes-the-dead               receipts/query-abandoned
blames-the-caller               unknown/operation
call-takes-loose-json           call-messages/duplicate
call-tells-another-version      call-opening/identity
call-tells-what-was-raised      call-methods/operate-raise
cancel-is-an-error              cancel/acknowledged-then-cancelled
cancels-what-answered           cancel/ignored-for-a-while
changes-ids                     call-messages/id-negative
checks-no-items                 streams/in-invalid-item
checks-no-payloads              values/typed-enum-reject-another-case
checks-no-results               operations/bad-result
chooses-the-lowest              handshake/highest-common
claims-no-effect                receipts/effect-committed
counts-bytes-as-characters      values/typed-text-accept-sixteen-astral-characters
counts-bytes-only               streams/out-pauses-without-items
counts-items-only               streams/out-pauses-without-bytes
counts-no-attempts              operations/context
counts-no-items                 streams/in-wrong-count
counts-wrong                    streams/out-three
credit-replaces                 streams/out-credit-is-additive
dedupes-across-operations       idempotency/another-operation
dies-of-sigterm                 goaway/terminated
dies-without-a-word             frames/zero-length
digests-the-attempt             idempotency/another-attempt-and-deadline
digests-the-bytes               canonical/same-digest-same-request
digests-the-result-wrongly      canonical/literals
does-unknown-actions            call-methods/operate-unknown-action
downgrades-too-far              handshake/downgrade-that-loses-streams
drops-nulls                     values/null-is-a-value
drops-work-on-goaway            goaway/in-flight-finishes
echoes-no-nonce                 messages/valid-heartbeat
every-error-is-fatal            unknown/operation
exits-with-1                    goaway/idle
faults-in-bodies-are-fatal      messages/request-unknown-member
finds-every-setting-valid       settings/own-check
floods-progress                 operations/progress-rate
forgets-causation               messages/valid-heartbeat
forgets-retryable               operations/fails-retryable-by-its-own-word
forgets-stream-end              streams/out-three
forgets-the-trace               operations/trace-on-an-error
forgets-the-watch               health/watch
forgives-stream-faults          streams/in-index-jumps
gives-credit-once               streams/in-credit-is-replenished
gives-no-credit                 streams/in-credit-comes-unasked
grants-every-scope              call-methods/inspect-not-granted
grants-everything               grants/not-granted
hides-a-capability              handshake/init-ack
hides-degraded                  settings/degraded
hides-deprecations              deprecation/told
ignores-call-cancel             call-end/cancelled
ignores-cancel                  cancel/acknowledged-then-cancelled
ignores-codecs                  handshake/codec-missing
ignores-deadlines               deadlines/passes
ignores-expiry                  grants/expired
ignores-fatal-errors            handshake/host-refuses-identity
ignores-feature-versions        handshake/downgrade-to-1.1
ignores-frame-limit             frames/response-too-large
ignores-grants                  grants/unknown-grant
ignores-idempotency-keys        idempotency/replay
ignores-initial-credit          streams/out-pauses-without-items
ignores-max-in-flight           operations/too-many-in-flight
ignores-maximum                 values/typed-number-reject-above
ignores-past-deadlines          deadlines/past
ignores-pattern                 values/typed-text-reject-another-pattern
ignores-request-digests         idempotency/another-payload
ignores-required                operations/schema-code-mismatch-first
ignores-requires                handshake/requires-unknown
ignores-retention               idempotency/retention-none
ignores-settings-digest         settings/false-digest
ignores-the-end-of-input        goaway/idle
ignores-the-request-timeout     deadlines/request-timeout
ignores-unique-items            values/typed-list-reject-equal-elements
ignores-unknown-requests        cancel/unknown-request
ignores-what-is-supported       handshake/features-none
initializes-twice               call-opening/twice
keeps-all-alike                 receipts/expires-audit
keeps-no-receipts               receipts/without-a-key
keeps-secrets                   privacy/secret-not-in-the-receipt
keeps-what-expired              receipts/store-expired
kills-what-is-cancelled         cancel/cleanup-runs
gives-no-grace                  goaway/closed-early-finishes
loses-the-last-progress         operations/progress-newest-is-told-before-the-end
late-frames-are-fatal           streams/out-late-flow-ignored
logs-secrets                    privacy/secret-used
logs-what-was-raised            privacy/payload-not-in-what-was-raised
makes-random-uuids              handshake/highest-common
message-id-repeats              messages/valid-heartbeat
misses-heartbeats-while-busy    heartbeats/while-busy
mixes-up-ids                    messages/valid-request
names-no-existing-operation     idempotency/running
needs-no-initialize             call-opening/before-plugin-health
needs-no-private-data           privacy/class-sensitive-not-granted
negative-length-is-large        frames/negative-length
never-retries                   idempotency/failed-retryable-no-effect
normalizes-nothing              settings/normalized
normalizes-text                 values/unicode-not-normalized
numbers-items-from-1            streams/out-three
one-code-for-all                call-methods/unknown
prints-to-the-protocol          frames/stdout-of-the-plugin
quotes-payloads-in-errors       privacy/payload-not-in-a-mismatch
raises-the-class                messages/valid-request
reads-long-lines                call-messages/64-mib
refuses-extensions              unknown/extension-ignored
refuses-sequence-gaps           sequence/jumps
renews-replayed-receipts        idempotency/replay
repeats-health                  health/watch-twice-the-same
replays-unknown-effects         idempotency/failed-effect-partial
reruns-abandoned                idempotency/crash-after-the-effect
reruns-cancelled                idempotency/cancelled-after-the-effect
reruns-failed                   idempotency/failed-not-retryable
reruns-unknown                  idempotency/failed-effect-unknown
rewrites-numbers                values/number-max
sequence-skips                  sequence/operation-id-repeats
sequence-stays                  sequence/operation-id-repeats
serves-after-goaway             goaway/later-requests-refused
serves-after-sunset             deprecation/after-the-sunset
serves-before-init              handshake/health-before-init
serves-disabled-features        messages/feature-off-heartbeat
serves-one-at-a-time            operations/concurrent
skips-empty-frames              frames/zero-length
speaks-every-protocol           call-opening/other-protocol
stores-nothing                  idempotency/replay-after-a-restart
survives-fatal-errors           frames/zero-length
takes-any-class                 privacy/class-not-in-init
takes-any-namespace             unknown/extension-without-namespace
takes-any-operation-version     unknown/operation-version-later
takes-any-protocol              handshake/other-major
takes-any-version               handshake/version-of-later-frames
takes-bad-manifests             manifests/category
takes-bad-params                call-methods/inspect-without-project
takes-bad-settings              settings/refused-by-the-plugin
takes-bad-timestamps            messages/base-timestamputc-wrong-6
takes-duplicate-capabilities    manifests/operation-twice
takes-duplicate-name            values/duplicate-in-payload
takes-false-manifest-digest     manifests/manifest-digest-false
takes-false-schema-digests      manifests/schema-digest-false
takes-int64-overflow            values/typed-int64-reject-overflow
takes-invalid-unicode           values/unicode-lone-high-escape
takes-items-in-any-order        streams/in-index-jumps
takes-large-extensions          unknown/extensions-above-16-kib
takes-large-frames              frames/negotiated-limit
takes-limit                     values/depth-65
takes-loose-base64              values/typed-bytes-reject-trailing-bits
takes-loose-times               values/typed-time-reject-lower-case-t
takes-missing-extensions        messages/base-extensions-missing
takes-number                    values/number-2-53
takes-old-sequences             sequence/repeats
takes-repeated-ids              sequence/message-id-repeats
takes-repeated-requests         sequence/request-id-repeats-later
takes-second-hello              handshake/hello-after-ready
takes-second-init               handshake/init-twice
takes-syntax                    values/syntax-word
takes-truncated-frames          frames/truncated-frame
takes-unknown-body-members      messages/heartbeat-load-unknown
takes-unknown-enum              values/typed-enum-reject-an-unknown-value
takes-unknown-envelope-members  messages/base-unknown-member
takes-unknown-members           values/typed-member-reject-unknown
tells-another-digest            receipts/manifest-digest canonical/manifest-digest-told
tells-another-identity          canonical/manifest-digest-told
tells-foreign-names             privacy/secret-and-name-exchanged
tells-no-progress               operations/progress
tells-no-versions               handshake/other-major
tells-progress-after-the-end    operations/progress-newest-is-told-before-the-end
tells-progress-anyway           messages/feature-off-progress
tells-receipts-anyway           messages/feature-off-receipts
tells-what-was-raised           privacy/payload-not-in-what-was-raised
tolerates-credit-abuse          streams/in-credit-exceeded
tolerates-no-buffered-item      streams/in-one-beyond-tolerated
uses-any-code                   operations/fails-with-an-unknown-code
waits-for-impossible-credit     streams/out-item-larger-than-any-grant
waits-for-the-first             idempotency/running
writes-long-messages            call-methods/operate-report-long
writes-nanoseconds              messages/valid-heartbeat
writes-no-claim                 receipts/store-claimed
writes-unknown-members          messages/valid-heartbeat
`

// TestEveryFaultIsCaught switches on each fault of the mutant and holds the
// corpus to noticing it.
func TestEveryFaultIsCaught(t *testing.T) {
	list := cases(t)
	var named []string
	var wg sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for line := range strings.Lines(strings.TrimSpace(caught)) {
		fields := strings.Fields(line)
		fault := fields[0]
		named = append(named, fault)
		var selected []*conformance.Case
		for _, only := range fields[1:] {
			found := conformance.Select(list, only)
			if len(found) == 0 {
				t.Errorf("%s: no case or group is called %q", fault, only)
			}
			selected = append(selected, found...)
		}
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			runner := &conformance.Runner{Command: program(t, fault), Parallel: 1, Patience: 1500 * time.Millisecond, Stop: true, Unprobed: true}
			results, err := runner.Run(t.Context(), selected)
			if err != nil {
				t.Errorf("%s: %v", fault, err)
				return
			}
			for _, r := range results {
				if r.Failure != nil && r.Failure.Fault == "" {
					return
				}
			}
			t.Errorf("the fault %s passes %s", fault, strings.Join(fields[1:], ", "))
		})
	}
	wg.Wait()
	slices.Sort(named)
	if len(named) < 60 {
		t.Errorf("only %d faults", len(named))
	}
	if !slices.Equal(named, mutant.Faults()) {
		for _, f := range mutant.Faults() {
			if !slices.Contains(named, f) {
				t.Errorf("the fault %s is tried on no case", f)
			}
		}
		for _, f := range named {
			if !slices.Contains(mutant.Faults(), f) {
				t.Errorf("the mutant has no fault %s", f)
			}
		}
	}
}
