package parse

// Names of formats; see the package comment.
const (
	None     = "none"
	Hermes   = "hermes"
	Llama3   = "llama3"
	Mistral  = "mistral"
	DeepSeek = "deepseek"
	Pythonic = "pythonic"

	Think    = "think"
	Brackets = "brackets"
)

// Config says what to look for. The zero value passes all text as content.
type Config struct {
	// ToolFormat and ReasoningFormat name formats; "" is None.
	ToolFormat      string
	ReasoningFormat string
	// ReasoningOpen and ReasoningClose replace the tags of ReasoningFormat
	// when both are set.
	ReasoningOpen, ReasoningClose string
	// InReasoning: the prompt ends inside reasoning.
	InReasoning bool
	// ToolsOffered are the names that may be called; a call of another name
	// is content, unless AnyName is set.
	ToolsOffered []string
	AnyName      bool
	// Parallel allows more than one call in a message. Without it the text
	// ends with the first.
	Parallel bool
}

// Kind is the kind of an Event.
type Kind uint8

// The kinds of events.
const (
	Content   Kind = iota // Text for the reader
	Reasoning             // Text of the model's thoughts
	ToolStart             // call Index of tool Name begins
	ToolArgs              // Text goes on the arguments of call Index
	ToolEnd               // call Index ends; Complete tells whether its arguments are whole JSON
)

// Event is one piece of what the text says.
type Event struct {
	Kind     Kind
	Index    int // 0, 1 … of the calls of this message
	Name     string
	Text     string
	Complete bool
}

// state is what the parser expects next.
type state uint8

const (
	stText      state = iota // content, any marker may begin
	stLead                   // nothing but white space since the start or the last marker
	stReason                 // inside reasoning
	stReasonTop              // as stReason, nothing but white space so far
	stBody                   // after an opening marker
	stHead                   // a name outside of JSON (Mistral, DeepSeek)
	stFence                  // between DeepSeek's name and arguments
	stBrace                  // only the brace of arguments may follow
	stObject                 // inside {"name": …, "arguments": …}
	stArgs                   // inside arguments that are shown as they come
	stPython                 // inside [name(…), …]
)

// lead says what came before the white space of stLead.
type lead uint8

const (
	atStart lead = iota
	afterReasoning
	afterCall
)

// Parser reads the text of one choice.
type Parser struct {
	cfg         Config
	frame       *frame
	format      string
	offered     map[string]bool
	open, close string // reasoning tags; "" if there are none
	opener      []marker

	state state
	lead  lead
	// held are the bytes read but not shown, skip of them white space at the
	// front that stays syntax if a marker follows.
	held  []byte
	space int
	// used marks the closers seen since the last call.
	used  uint32
	list  bool // inside a list of calls
	index int  // of the current or next call
	done  bool

	call call
	args scanner

	text     []byte // of the event being built
	textKind Kind
	events   []Event
}

// New returns a parser at the start of a message. Unknown formats are None.
func New(cfg Config) *Parser {
	p := &Parser{cfg: cfg, format: cfg.ToolFormat, frame: frames[cfg.ToolFormat]}
	tags := reasoningTags[cfg.ReasoningFormat]
	if cfg.ReasoningOpen != "" && cfg.ReasoningClose != "" &&
		len(cfg.ReasoningOpen) <= MaxTagBytes && len(cfg.ReasoningClose) <= MaxTagBytes {
		tags = [2]string{cfg.ReasoningOpen, cfg.ReasoningClose}
	}
	p.open, p.close = tags[0], tags[1]
	if p.open != "" {
		p.opener = []marker{{p.open, actReason}}
	}
	if p.frame == nil {
		p.frame = &frame{}
	}
	p.offered = make(map[string]bool, len(cfg.ToolsOffered))
	for _, name := range cfg.ToolsOffered {
		p.offered[name] = true
	}
	p.state = stLead
	if cfg.InReasoning && p.close != "" {
		p.state = stReasonTop
	}
	return p
}

// Calls is the number of calls that have begun.
func (p *Parser) Calls() int { return p.index }

// Feed takes the next bytes, and with final tells that none will follow. The
// events are valid until the next Feed. done tells that the message is over:
// what follows is ignored.
func (p *Parser) Feed(text []byte, final bool) (events []Event, done bool) {
	p.events = p.events[:0]
	for _, b := range text {
		if p.done {
			break
		}
		for !p.step(b) {
		}
	}
	if final && !p.done {
		p.finish()
		p.done = true
	}
	p.flush()
	return p.events, p.done
}

// step takes b, or changes the state and returns false to be called again.
// Every path ends in a state that takes it: a broken call leads to stText.
func (p *Parser) step(b byte) bool {
	switch p.state {
	case stLead:
		return p.stepLead(b)
	case stReason, stReasonTop:
		p.stepReason(b)
		return true
	case stBody:
		return p.stepBody(b)
	case stHead:
		return p.stepHead(b)
	case stFence:
		return p.stepFence(b)
	case stBrace:
		return p.stepBrace(b)
	case stObject:
		return p.stepObject(b)
	case stArgs:
		return p.stepArgs(b)
	case stPython:
		return p.stepPython(b)
	}
	p.stepText(b)
	return true
}

// finish flushes what is held when the text has ended.
func (p *Parser) finish() {
	switch p.state {
	case stReason, stReasonTop:
		if p.space < len(p.held) { // a part of the closing tag
			p.releaseReason()
			p.emit(Reasoning, p.held)
		}
	case stLead:
		switch {
		case p.lead == atStart:
			p.emit(Content, p.held)
		case p.space < len(p.held):
			p.dropLead()
			p.emit(Content, p.held)
		}
	case stArgs:
		p.event(Event{Kind: ToolEnd, Index: p.index})
		p.index++
	case stObject, stPython:
		if !p.call.ended || !allSpace(p.held) {
			p.emit(Content, p.held)
		}
	default:
		p.emit(Content, p.held)
	}
	p.held = p.held[:0]
}

// dropLead drops the white space that belongs to a reasoning tag.
func (p *Parser) dropLead() {
	if p.lead == afterReasoning {
		p.held = p.held[p.space:]
		p.space = 0
	}
}

// giveUp makes the held bytes content: they were no call after all.
func (p *Parser) giveUp() {
	p.emit(Content, p.held)
	p.held, p.space = p.held[:0], 0
	p.list = false
	p.state = stText
}

// hold keeps b, which was read but may not be shown yet.
func (p *Parser) hold(b byte) { p.held = append(p.held, b) }

// emit appends text to the event of its kind.
func (p *Parser) emit(kind Kind, text []byte) {
	if len(text) == 0 {
		return
	}
	if len(p.text) > 0 && p.textKind != kind {
		p.flush()
	}
	p.textKind = kind
	p.text = append(p.text, text...)
}

// flush closes the event that is being built.
func (p *Parser) flush() {
	if len(p.text) == 0 {
		return
	}
	ev := Event{Kind: p.textKind, Text: string(p.text)}
	if ev.Kind == ToolArgs {
		ev.Index = p.index
	}
	p.events = append(p.events, ev)
	p.text = p.text[:0]
}

func (p *Parser) event(ev Event) {
	p.flush()
	p.events = append(p.events, ev)
}
