// What the openai client for Node sees of a node. IEG_BASE_URL names it.
// Prints a line a case and "N passed, N failed"; exits 1 if any failed.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

// The client lies in the cache, not beside this file: NODE_PATH says where.
const OpenAI = createRequire(process.env.NODE_PATH + '/x.js')('openai')

const base = process.env.IEG_BASE_URL.replace(/\/$/, '')
const client = new OpenAI({ baseURL: base + '/v1', apiKey: process.env.IEG_API_KEY ?? 'none', maxRetries: 0, timeout: 120_000 })
const names = (await client.models.list()).data.map((m) => m.id)
const embedder = names.find((n) => n.toLowerCase().includes('minilm'))
const model = names.find((n) => n !== embedder)

const tools = [
	{
		type: 'function',
		function: {
			name: 'get_weather',
			description: 'The weather in a city',
			parameters: {
				type: 'object',
				properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'fahrenheit'] } },
				required: ['city', 'unit'],
				additionalProperties: false,
			},
		},
	},
]

const ask = (content, more = {}, options) =>
	client.chat.completions.create({ model, max_completion_tokens: 24, messages: [{ role: 'user', content }], ...more }, options)

const checkCall = (call) => {
	assert.equal(call.function.name, 'get_weather')
	const args = JSON.parse(call.function.arguments)
	assert.equal(typeof args.city, 'string')
	assert.ok(['celsius', 'fahrenheit'].includes(args.unit))
}

async function running() {
	const text = await (await fetch(base + '/metrics')).text()
	const lines = text.split('\n').filter((l) => /^ieg_requests_running[ {]/.test(l))
	assert.ok(lines.length > 0, 'no metric ieg_requests_running')
	return lines.reduce((sum, l) => sum + Number(l.split(' ').at(-1)), 0)
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0)

const cases = {
	async chat() {
		const r = await ask('Say hello.')
		assert.equal(r.object, 'chat.completion')
		assert.ok(r.choices[0].message.content)
		assert.equal(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens)
	},

	async streaming() {
		let text = '', usage, finish = []
		for await (const chunk of await ask('Tell me about rivers.', { stream: true, stream_options: { include_usage: true } })) {
			if (chunk.usage) usage = chunk.usage
			const c = chunk.choices[0]
			text += c?.delta.content ?? ''
			if (c?.finish_reason) finish.push(c.finish_reason)
		}
		assert.ok(text)
		assert.equal(finish.length, 1)
		assert.ok(usage.completion_tokens > 0 && usage.completion_tokens <= 24)
	},

	async 'streaming by the runner'() {
		const s = client.chat.completions.stream({ model, max_completion_tokens: 24, messages: [{ role: 'user', content: 'Hi!' }] })
		const final = await s.finalChatCompletion()
		assert.ok(final.choices[0].message.content)
	},

	async 'tools, required'() {
		const r = await ask('What is the weather in Paris?', { tools, tool_choice: 'required', parallel_tool_calls: false, max_completion_tokens: 160 })
		assert.equal(r.choices[0].finish_reason, 'tool_calls')
		r.choices[0].message.tool_calls.forEach(checkCall)
	},

	async 'tools, auto'() {
		const c = (await ask('What is the weather in Paris?', { tools, max_completion_tokens: 80 })).choices[0]
		assert.equal(Boolean(c.message.tool_calls?.length), c.finish_reason === 'tool_calls')
		assert.ok(c.message.tool_calls?.length || c.message.content)
	},

	async 'tools, streaming'() {
		const s = client.chat.completions.stream({
			model, tools, tool_choice: 'required', parallel_tool_calls: false, max_completion_tokens: 160, messages: [{ role: 'user', content: 'Weather in Rome?' }],
		})
		const final = await s.finalChatCompletion()
		assert.equal(final.choices[0].finish_reason, 'tool_calls')
		final.choices[0].message.tool_calls.forEach(checkCall)
	},

	async json_schema() {
		const schema = {
			type: 'object',
			properties: { mood: { enum: ['good', 'bad'] }, reasons: { type: 'array', items: { type: 'string', maxLength: 12 }, maxItems: 2 } },
			required: ['mood', 'reasons'],
			additionalProperties: false,
		}
		const r = await ask('I am happy!', {
			response_format: { type: 'json_schema', json_schema: { name: 'mood', schema, strict: true } }, max_completion_tokens: 200,
		})
		assert.equal(r.choices[0].finish_reason, 'stop')
		const v = JSON.parse(r.choices[0].message.content)
		assert.ok(['good', 'bad'].includes(v.mood) && v.reasons.length <= 2)
	},

	async 'two choices'() {
		const r = await ask('Write a sentence.', { n: 2, temperature: 1, seed: 3 })
		assert.deepEqual(r.choices.map((c) => c.index).sort(), [0, 1])
		assert.ok(r.choices.every((c) => c.message.content))
	},

	async logprobs() {
		const c = (await ask('Say hello.', { logprobs: true, top_logprobs: 2, temperature: 0 })).choices[0]
		assert.ok(c.logprobs.content.length > 0)
		for (const t of c.logprobs.content) {
			assert.ok(t.logprob <= 0 && t.top_logprobs.length === 2 && t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob)
		}
		const text = Buffer.concat(c.logprobs.content.map((t) => Buffer.from(t.bytes))).toString()
		assert.ok(text.startsWith(c.message.content))
	},

	async embeddings() {
		const r = await client.embeddings.create({ model: embedder, input: ['A man is eating food.', 'Someone has a meal', 'The stock market fell.'] })
		const [a, b, c] = r.data.map((d) => d.embedding)
		assert.equal(a.length, 384)
		assert.ok(Math.abs(dot(a, a) - 1) < 1e-3)
		assert.ok(dot(a, b) > 0.6 && dot(a, c) < 0.3, `${dot(a, b)} ${dot(a, c)}`)
	},

	async 'cancel mid-stream'() {
		const s = await ask('Write a very long story.', { stream: true, max_completion_tokens: 1000, ignore_eos: true })
		let seen = 0, before
		for await (const chunk of s) {
			if (chunk.choices[0]?.delta.content && ++seen === 3) {
				before = await running()
				break // closes the connection
			}
		}
		assert.ok(before >= 1)
		const end = Date.now() + 1000
		while ((await running()) >= before) {
			assert.ok(Date.now() < end, 'still runs a second after the client left')
			await new Promise((done) => setTimeout(done, 20))
		}
	},

	async errors() {
		await assert.rejects(ask('x', { model: 'no-such-model' }), (e) => e instanceof OpenAI.NotFoundError && Boolean(e.message))
		await assert.rejects(ask('word '.repeat(60000)), (e) => e instanceof OpenAI.BadRequestError && e.code === 'context_length_exceeded')
	},
}

let failed = 0
for (const [name, run] of Object.entries(cases)) {
	const began = Date.now()
	try {
		await run()
		console.log(`ok    ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`)
	} catch (e) {
		failed++
		console.log(`FAIL  ${name}\n${e.stack}`)
	}
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
