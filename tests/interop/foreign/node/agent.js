// kafkajs doing what a test asks: a JSON object per line on stdin, one per line back on stdout. See ../agents.py.
'use strict'

const fs = require('node:fs')
const readline = require('node:readline')
const {
  AssignerProtocol: { MemberMetadata, MemberAssignment },
  CompressionCodecs,
  CompressionTypes,
  Kafka,
  Partitioners,
  logLevel,
} = require('kafkajs')
const lz4 = require('lz4js')
const xxh = require('lz4js/xxh32.js')
const { ZstdCodec } = require('zstd-codec')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
// lz4js does not say that its blocks are independent, and Kafka accepts no other frames: say it, and sum the header anew.
const lz4Frame = plain => {
  const frame = Buffer.from(lz4.compress(plain))
  frame[4] |= 0x20
  frame[6] = (xxh.hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4Frame(encoder.buffer),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
const zstd = new Promise(resolve => ZstdCodec.run(loaded => resolve(new loaded.Streaming())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})
const CODECS = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

const bytes = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
const text = buffer => (buffer === null || buffer === undefined ? null : Buffer.from(buffer).toString('base64'))
// Settings have librdkafka's names.
const security = (settings = {}) => {
  const protocol = settings['security.protocol'] || 'PLAINTEXT'
  const [mechanism, username, password] = ['mechanism', 'username', 'password'].map(name => settings[`sasl.${name}`])
  const file = name => (settings[name] ? fs.readFileSync(settings[name]) : undefined)
  const ssl = () => ({
    ca: [file('ssl.ca.location')],
    cert: file('ssl.certificate.location'),
    key: file('ssl.key.location'),
  })
  const login = settings.token
    ? { oauthBearerProvider: async () => ({ value: settings.token }) }
    : { username, password }
  return {
    ...(protocol.endsWith('SSL') ? { ssl: ssl() } : {}),
    ...(protocol.startsWith('SASL') ? { sasl: { mechanism: mechanism.toLowerCase(), ...login } } : {}),
  }
}
const client = (request, retries = 8) =>
  new Kafka({
    clientId: 'kafkajs',
    brokers: [request.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, retries },
    ...security(request.settings),
  })

// A header that occurs twice is a list in kafkajs.
const headersIn = list => {
  const headers = {}
  for (const [name, value] of list || []) {
    const before = headers[name]
    headers[name] = before === undefined ? bytes(value) : [].concat(before, bytes(value))
  }
  return headers
}
const headersOut = headers =>
  Object.entries(headers || {}).flatMap(([name, value]) => [].concat(value).map(each => [name, text(each)]))

const recordOut = (topic, partition, message) => ({
  topic,
  partition,
  offset: Number(message.offset),
  timestamp: Number(message.timestamp),
  key: text(message.key),
  value: text(message.value),
  headers: headersOut(message.headers),
})

// kafkajs has only an assigner that no other client knows; this is `range`, which all of them know.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  async assign({ members, topics }) {
    const assignment = {}
    const sorted = members.map(each => each.memberId).sort()
    for (const id of sorted) assignment[id] = {}
    for (const topic of topics) {
      const wanting = sorted.filter(id => {
        const { memberMetadata } = members.find(each => each.memberId === id)
        return MemberMetadata.decode(memberMetadata).topics.includes(topic)
      })
      const partitions = cluster.findTopicPartitionMetadata(topic).map(each => each.partitionId).sort((a, b) => a - b)
      const share = Math.floor(partitions.length / wanting.length)
      const larger = partitions.length % wanting.length
      let at = 0
      wanting.forEach((id, index) => {
        const count = share + (index < larger ? 1 : 0)
        assignment[id][topic] = partitions.slice(at, at + count)
        at += count
      })
    }
    return sorted.map(memberId => ({
      memberId,
      memberAssignment: MemberAssignment.encode({ version: 0, assignment: assignment[memberId] }),
    }))
  },
  protocol: ({ topics }) => ({ name: 'range', metadata: MemberMetadata.encode({ version: 0, topics }) }),
})

const steps = {
  // One question of the broker: the error is why it could not be asked.
  login: async request => {
    const admin = client(request, 0).admin()
    await admin.connect()
    try {
      await admin.listTopics()
    } finally {
      await admin.disconnect()
    }
    return null
  },

  hello: async () => require('kafkajs/package.json').version,

  produce: async request => {
    const producer = client(request).producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      idempotent: request.idempotent === true,
      ...(request.idempotent ? { maxInFlightRequests: 1 } : {}),
    })
    await producer.connect()
    try {
      const messages = request.records.map(record => ({
        key: bytes(record.key),
        value: bytes(record.value),
        headers: headersIn(record.headers),
        ...(record.partition === null || record.partition === undefined ? {} : { partition: record.partition }),
        ...(record.timestamp ? { timestamp: String(record.timestamp) } : {}),
      }))
      const compression = CODECS[request.codec || 'none']
      const answers = await producer.send({ topic: request.topic, messages, compression })
      return answers.map(answer => [answer.partition, Number(answer.baseOffset)])
    } finally {
      await producer.disconnect()
    }
  },

  // kafkajs cannot read without a group: a group of its own, which nobody looks at again.
  consume: async request => {
    const kafka = client(request)
    const consumer = kafka.consumer({ groupId: `kafkajs-${process.pid}-${Date.now()}`, maxWaitTimeInMs: 100 })
    const seen = []
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [request.topic], fromBeginning: true })
      let done
      const enough = new Promise(resolve => (done = resolve))
      await consumer.run({
        autoCommit: false,
        eachMessage: async ({ topic, partition, message }) => {
          if (request.from_ms && Number(message.timestamp) < request.from_ms) return
          seen.push(recordOut(topic, partition, message))
          if (seen.length >= request.count) done()
        },
      })
      if (request.from_ms) await seekToTime(kafka, consumer, request)
      const late = setTimeout(done, request.timeout_ms || 20000)
      await enough
      clearTimeout(late)
    } finally {
      await consumer.disconnect()
    }
    return seen
  },

  join: async request => {
    const consumer = client(request).consumer({
      groupId: request.group,
      partitionAssigners: [range],
      maxWaitTimeInMs: 100,
      sessionTimeout: 10000,
      rebalanceTimeout: 10000,
      heartbeatInterval: 500,
      metadataMaxAge: 1000,
    })
    const member = { consumer, records: [], assignment: [], error: null }
    members.set(request.member, member)
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      member.assignment = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
        partitions.map(partition => [topic, partition])
      )
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => (member.error = String(payload.error)))
    await consumer.connect()
    const topics = request.pattern ? [new RegExp(request.pattern)] : request.topics
    await consumer.subscribe({ topics, fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        member.records.push(recordOut(topic, partition, message))
        const next = String(BigInt(message.offset) + 1n)
        await consumer.commitOffsets([{ topic, partition, offset: next }])
      },
    })
    return null
  },

  seen: async request => shown(members.get(request.member)),

  leave: async request => {
    const member = members.get(request.member)
    members.delete(request.member)
    await member.consumer.disconnect()
    return shown(member)
  },

  txn_open: async request => {
    const producer = transactional(request)
    await producer.connect()
    // kafkajs takes the transactional id with the first transaction; this one is ended at once.
    const first = await producer.transaction()
    await first.abort()
    producers.set(request.producer, { producer, open: null })
    return null
  },
  txn_begin: async request => {
    const held = producers.get(request.producer)
    held.open = await held.producer.transaction()
    return null
  },
  txn_send: async request => {
    const messages = [{ partition: request.partition, value: bytes(request.value) }]
    await producers.get(request.producer).open.send({ topic: request.topic, messages })
    return null
  },
  txn_offsets: async request => {
    const partitions = [{ partition: request.partition, offset: String(request.offset) }]
    const topics = [{ topic: request.topic, partitions }]
    await producers.get(request.producer).open.sendOffsets({ consumerGroupId: request.group, topics })
    return null
  },
  txn_commit: async request => {
    await producers.get(request.producer).open.commit()
    return null
  },
  txn_abort: async request => {
    await producers.get(request.producer).open.abort()
    return null
  },
  txn_close: async request => {
    await producers.get(request.producer).producer.disconnect()
    producers.delete(request.producer)
    return null
  },

  // Moves `count` records from one topic to another, exactly once, or all that come up to one whose value is `last`; every
  // fifth transaction is aborted and repeated. kafkajs names no generation with its offsets: where there are other members,
  // `by_partition` gives every partition of the source a transactional id of its own. Who is given a partition takes its id
  // over, which settles what the member before left, and then asks where to go on.
  txn_pipe: async request => {
    const kafka = client(request)
    const consumer = kafka.consumer({
      groupId: request.group,
      partitionAssigners: [range],
      maxWaitTimeInMs: 100,
      sessionTimeout: 6000,
      heartbeatInterval: 500,
      readUncommitted: false,
    })
    const admin = kafka.admin()
    const owned = new Map()
    const disown = async () => {
      const before = [...owned.values()]
      owned.clear()
      for (const producer of before) await producer.disconnect()
    }
    const take = async name => {
      const producer = transactional({ ...request, transactional_id: name })
      await producer.connect()
      await (await producer.transaction()).abort()
      return producer
    }
    const goOnWhereCommitted = async ({ topic, partition }) => {
      const [{ partitions }] = await admin.fetchOffsets({ groupId: request.group, topics: [topic] })
      const { offset } = partitions.find(each => each.partition === partition)
      consumer.seek({ topic, partition, offset: String(Math.max(0, Number(offset))) })
    }
    let moved = 0
    let number = 0
    let done, failed
    const enough = new Promise((resolve, reject) => ([done, failed] = [resolve, reject]))
    const eachBatch = async ({ batch, resolveOffset }) => {
      const name = request.transactional_id + (request.by_partition ? `-${batch.partition}` : '')
      if (!owned.has(name)) {
        owned.set(name, await take(name))
        if (request.by_partition) return await goOnWhereCommitted(batch)
      }
      for (let at = 0; at < batch.messages.length; number++) {
        const some = batch.messages.slice(at, at + 10)
        const open = await owned.get(name).transaction()
        const messages = some.map(each => ({ partition: batch.partition, value: each.value }))
        await open.send({ topic: request.target, messages })
        const next = String(BigInt(some[some.length - 1].offset) + 1n)
        const partitions = [{ partition: batch.partition, offset: next }]
        const topics = [{ topic: batch.topic, partitions }]
        await open.sendOffsets({ consumerGroupId: request.group, topics })
        if (number % 5 === 4) {
          await open.abort()
          continue
        }
        await open.commit()
        resolveOffset(some[some.length - 1].offset)
        at += some.length
        moved += some.length
        if (some.some(each => each.value.toString() === request.last)) return done()
      }
      if (moved >= request.count) done()
    }
    try {
      await admin.connect()
      await consumer.connect()
      if (request.by_partition) consumer.on(consumer.events.GROUP_JOIN, disown)
      await consumer.subscribe({ topics: [request.source], fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: offered => eachBatch(offered).catch(failed),
      })
      await enough
    } finally {
      await consumer.disconnect()
      await disown()
      await admin.disconnect()
    }
    return moved
  },

  // Any method of kafkajs' admin client; one client for each broker, as some methods rely on what others have loaded.
  admin: async request => {
    if (!admins.has(request.bootstrap)) {
      const fresh = client(request).admin()
      await fresh.connect()
      admins.set(request.bootstrap, fresh)
    }
    const answer = await admins.get(request.bootstrap)[request.method](...(request.arguments || []))
    return answer === undefined ? null : answer
  },
}

const seekToTime = async (kafka, consumer, request) => {
  const admin = kafka.admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsetsByTimestamp(request.topic, request.from_ms)
  await admin.disconnect()
  for (const { partition, offset } of offsets) consumer.seek({ topic: request.topic, partition, offset })
}

const transactional = request =>
  client(request).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    transactionalId: request.transactional_id,
    transactionTimeout: request.timeout_ms || 60000,
    idempotent: true,
    maxInFlightRequests: 1,
    retry: { initialRetryTime: 100, retries: 8 },
  })

const producers = new Map()
const members = new Map()
const admins = new Map()
const shown = ({ assignment, records, error }) => ({ assignment, records, error })

readline.createInterface({ input: process.stdin }).on('line', async line => {
  const request = JSON.parse(line)
  let answer
  try {
    if (!steps[request.op]) throw new Error(`no such step: ${request.op}`)
    answer = { result: await steps[request.op](request) }
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}).on('close', () => process.exit(0))
