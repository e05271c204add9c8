package sigstoretest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/go-openapi/runtime"
	"github.com/go-openapi/strfmt"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	_ "github.com/sigstore/rekor/pkg/types/hashedrekord/v0.0.1" // the kind of entry that is logged
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

// record answers as Rekor's first API: an entry, its promise and its proof.
func (i *Instance) record(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	proposed, err := models.UnmarshalProposedEntry(bytes.NewReader(text), runtime.JSONConsumer())
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	entry, err := types.UnmarshalEntry(proposed)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	body, err := types.CanonicalizeEntry(r.Context(), entry)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	id, logged, err := i.Log(r.Context(), body)
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", id)
	w.Header().Set("Location", EntriesPath+"/"+id)
	w.WriteHeader(http.StatusCreated)
	writeJSON(w, models.LogEntry{id: *logged})
}

// Log enters a canonical entry and returns its id and what Rekor says of it.
func (i *Instance) Log(_ context.Context, body []byte) (string, *models.LogEntryAnon, error) {
	log, err := i.log.RekorLogID()
	if err != nil {
		return "", nil, err
	}
	index, at := i.entries.Add(1), time.Now().Unix()
	text := base64.StdEncoding.EncodeToString(body)
	promise, err := i.log.RekorSignPayload(tlog.RekorPayload{Body: text, IntegratedTime: at, LogIndex: index, LogID: log})
	if err != nil {
		return "", nil, err
	}
	proof, err := i.log.GetInclusionProof(body)
	if err != nil {
		return "", nil, err
	}
	if proof.Hashes == nil {
		proof.Hashes = []string{}
	}
	leaf := sha256.Sum256(append([]byte{0}, body...))
	return hex.EncodeToString(leaf[:]), &models.LogEntryAnon{Body: text, IntegratedTime: &at, LogID: &log, LogIndex: &index,
		Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: strfmt.Base64(promise)}}, nil
}

// stamp answers as a timestamp authority (RFC 3161).
func (i *Instance) stamp(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	request, err := timestamp.ParseRequest(text)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	answer, err := (&timestamp.Timestamp{HashAlgorithm: request.HashAlgorithm, HashedMessage: request.HashedMessage, Time: time.Now(), Nonce: request.Nonce,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: request.Certificates, ExtraExtensions: request.Extensions,
	}).CreateResponseWithOpts(i.stamper.Leaf, i.stamperKey, sigHash)
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}
