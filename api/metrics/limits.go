package metrics

// MaxScrapes is the most scrapes that are answered at once; more get 503.
const MaxScrapes = 4
