package tokenfile

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bonsai/pkg/apiserver/request"
)

func TestRead(t *testing.T) {
	t.Parallel()
	a, err := read(strings.NewReader("tok1,alice,u1\ntok2,bob,u2,\"dev,ops\"\n,nobody,u3\n"))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]*request.User{
		"tok1": {Name: "alice", UID: "u1"},
		"tok2": {Name: "bob", UID: "u2", Groups: []string{"dev", "ops"}},
		"":     nil, "other": nil,
	} {
		got, _, err := a.AuthenticateToken(context.Background(), token, nil)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v %s", token, err, d)
		}
	}
}

func TestReadSaysWhereAndNotWhat(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"tok,alice,u\nsecret,bob\n", "secret\"x,y,z\n"} {
		_, err := read(strings.NewReader(in))
		if err == nil || !strings.Contains(err.Error(), "line") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", in, err)
		}
	}
}
