// Package tokenfile knows bearer tokens from a CSV file (--token-auth-file): token,user,uid[,"group1,group2"].
package tokenfile

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// Authenticator knows the tokens of one file, as it was when it was read.
type Authenticator struct {
	// by the token's hash, so that a look-up's time says nothing of other tokens
	users map[[sha256.Size]byte]*request.User
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// Open reads the file path.
func Open(path string) (*Authenticator, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	defer f.Close()
	a, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("reading tokens of %s: %w", path, err)
	}
	return a, nil
}

// read reads tokens. Lines with an empty token are skipped; of two lines with the same token the last counts. Errors
// name the line and never its content.
func read(r io.Reader) (*Authenticator, error) {
	a := &Authenticator{users: map[[sha256.Size]byte]*request.User{}}
	c := csv.NewReader(r)
	c.FieldsPerRecord = -1
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		if len(rec) < 3 {
			return nil, fmt.Errorf("line %d: needs at least the 3 columns token, user name and user uid, has %d", line,
				len(rec))
		}
		if rec[0] == "" {
			continue
		}
		u := &request.User{Name: rec[1], UID: rec[2]}
		if len(rec) > 3 && rec[3] != "" {
			u.Groups = strings.Split(rec[3], ",")
		}
		a.users[sha256.Sum256([]byte(rec[0]))] = u
	}
}

// AuthenticateToken implements authn.TokenAuthenticator. These tokens are the API server's own and name no audience.
func (a *Authenticator) AuthenticateToken(_ context.Context, token string, _ []string) (*request.User, []string,
	error) {
	u := a.users[sha256.Sum256([]byte(token))]
	if u == nil {
		return nil, nil, nil
	}
	return u, nil, nil
}
