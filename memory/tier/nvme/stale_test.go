package nvme

import "testing"

// Pages are given up when nobody reads, or when they are many, each once.
func TestStale(t *testing.T) {
	var s stale
	given := map[int]int{}
	end := func(fd int) int {
		list := s.end(wasRead{fd: fd})
		for _, r := range list {
			given[r.fd]++
		}
		return len(list)
	}
	s.begin()
	s.begin()
	if n := end(0); n != 0 {
		t.Errorf("%d given up while another reads", n)
	}
	if n := end(1); n != 2 {
		t.Errorf("%d given up by the last one, not 2", n)
	}
	s.begin() // it goes on for long
	for fd := 2; fd < 2+2*staleMax; fd++ {
		s.begin()
		end(fd)
	}
	if len(s.list) != 0 || end(2+2*staleMax) != 1 {
		t.Errorf("%d are kept", len(s.list))
	}
	for fd := range 3 + 2*staleMax {
		if given[fd] != 1 {
			t.Errorf("%d was given up %d times", fd, given[fd])
		}
	}
}
