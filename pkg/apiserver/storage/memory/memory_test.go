package memory_test

import (
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storagetest.Suite(t, func(*testing.T) storage.Interface { return memory.New(storagetest.Table()) })
}
