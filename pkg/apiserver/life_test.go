package apiserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/request"
)

// A request that waits to be judged again does not hold up the server's stop, and one under way goes on until it is cut
// off.
func TestRequestsAtTheStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping, cutOff := make(chan struct{}), make(chan struct{})
		streams, endStreams := context.WithCancel(context.WithValue(t.Context(), lifeKey{}, life{stopping, cutOff}))
		ctx, cancel := whole(streams, time.Hour)
		defer cancel()
		s := &Server{Config: Config{RolesKnown: make(chan struct{})}}
		begun, judged := time.Now(), make(chan bool)
		go func() { judged <- s.awaitRoles(request.WithUser(ctx, &request.User{Name: "component"})) }()
		synctest.Wait()
		close(stopping)
		endStreams()
		if again := <-judged; again || time.Since(begun) != 0 {
			t.Errorf("judged again: %t, after %v", again, time.Since(begun))
		}
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("what is under way was cut off when the stop began")
		}
		close(cutOff)
		<-ctx.Done()
		if time.Since(begun) != 0 {
			t.Errorf("cut off after %v", time.Since(begun))
		}
	})
}
