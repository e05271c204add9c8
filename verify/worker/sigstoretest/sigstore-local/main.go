// Command sigstore-local serves an instance of Sigstore for tests on this machine, until
// its standard input ends. It writes into the directory DIR
//
//	url                where it listens, with TLS
//	plain              where it listens without
//	ca.pem             what its clients must know
//	trusted_root.json  what proves its signatures
//	token, other, expired, elsewhere
//	                   identity tokens: of release@example.com, of somebody else, of
//	                   yesterday, for somebody else
//
// and then a line to standard output. At /actions it hands out the token of a job of
// GitHub Actions, whose bearer token is "job".
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sigstore-local DIR")
	}
	if err := serve(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func serve(dir string) error {
	i, err := sigstoretest.New()
	if err != nil {
		return err
	}
	certificate, authority, err := serverCertificate()
	if err != nil {
		return err
	}
	trusted, err := i.TrustedRoot()
	if err != nil {
		return err
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.pem": authority, "trusted_root.json": trusted,
		"url": []byte("https://" + secure.Addr().String()), "plain": []byte("http://" + plain.Addr().String())}
	claims := sigstoretest.Claims{Issuer: "https://accounts.example.com", Subject: "4711", Email: "release@example.com", Verified: true,
		Audience: sigstoretest.Audience, Expires: time.Now().Add(time.Hour).Unix()}
	tokens := map[string]sigstoretest.Claims{"token": claims}
	other, expired, elsewhere := claims, claims, claims
	other.Email = "somebody.release@example.com"
	expired.Expires = time.Now().Add(-24 * time.Hour).Unix()
	elsewhere.Audience = "somebody else"
	tokens["other"], tokens["expired"], tokens["elsewhere"] = other, expired, elsewhere
	for name, c := range tokens {
		text, err := i.Token(c)
		if err != nil {
			return err
		}
		files[name] = []byte(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	job := claims
	job.Issuer, job.Email, job.Subject = "https://token.actions.example.com", "", "https://example.com/o/r/.github/workflows/release.yml@refs/tags/v1"
	jobToken, err := i.Token(job)
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	handler.Handle("/", i.Handler())
	handler.HandleFunc("GET /actions", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer job" || r.URL.Query().Get("audience") != job.Audience {
			http.Error(w, "this job may not", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"value":%q}`, jobToken)
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	for _, listener := range []net.Listener{plain, secure} {
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				log.Fatal(err)
			}
		}()
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, server.Close())
}

// serverCertificate makes a certificate of this machine's own, and it again as PEM.
func serverCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
