package receipts

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Record is one file: a receipt, and what the operation ended with.
type Record struct {
	Receipt wire.Receipt
	Result  json.RawMessage // the response's payload; nil where it was not kept
	Error   *Failure        // of an operation that failed
}

// A Failure is an error as it was answered.
type Failure struct {
	Code      wire.Code
	Message   string
	Retryable bool
}

func (r *Record) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"receipt":`...)
	dst = r.Receipt.AppendJSON(dst)
	if r.Result != nil {
		dst = append(append(dst, `,"result":`...), r.Result...)
	}
	if r.Error != nil {
		dst = wire.AppendString(append(dst, `,"error":{"code":`...), string(r.Error.Code))
		dst = wire.AppendString(append(dst, `,"message":`...), r.Error.Message)
		dst = strconv.AppendBool(append(dst, `,"retryable":`...), r.Error.Retryable)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// parse reads a record strictly; what another process wrote may be damaged.
func parse(data []byte) (*Record, error) {
	if err := strict.Check(data); err != nil {
		return nil, err
	}
	r := &Record{}
	err := strict.Object(data,
		strict.Required("receipt", func(v []byte) error { return wire.Decode(v, &r.Receipt) }),
		strict.Optional("result", strict.Raw(&r.Result)),
		strict.Optional("error", func(v []byte) error {
			r.Error = new(Failure)
			return strict.Object(v,
				strict.Required("code", strict.String(&r.Error.Code)),
				strict.Required("message", strict.String(&r.Error.Message)),
				strict.Required("retryable", func(v []byte) error {
					r.Error.Retryable = string(v) == "true"
					if !r.Error.Retryable && string(v) != "false" {
						return errors.New("retryable must be true or false")
					}
					return nil
				}))
		}))
	return r, err
}
