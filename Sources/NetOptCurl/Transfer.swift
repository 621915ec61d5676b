import CCurl
import NetOptCore

/// One leg of an exchange on an easy handle: it connects, asks the race at the gate, and when it has won carries
/// request and response. Confined to the loop; the methods that callbacks call only record.
final class Transfer {
  /// The call. A cycle until the transfer ends: what libcurl still records of it must find the call.
  let exchange: Exchange
  let easy: EasyHandle
  let leg: Int
  let endpoint: Endpoint?
  let proxy: String?
  private let records: TurnRecords
  private let spareChunks: SpareChunks

  let started: MonotonicInstant
  private(set) var openedAt: MonotonicInstant?
  /// When TCP was connected, if this leg did that. libcurl's own time is zero until TLS is done as well.
  var connectedAt: MonotonicInstant?
  /// For how long the leg, a probe's, then waited for its turn to begin TLS.
  var waitForTurn = Duration.zero
  private(set) var readyAt: MonotonicInstant?
  /// The port on this side of the connection, which tells it apart from others to the endpoint.
  private(set) var localPort: Int32 = 0
  private var sentAt: MonotonicInstant?
  private var firstByteAt: MonotonicInstant?

  /// The socket that the leg opened for itself; `nil` on a pooled connection.
  private(set) var descriptor: Int32?
  private(set) var verdict: Race.Verdict?
  /// The version of TLS, asked for while the connection is the transfer's own: afterwards libcurl does not tell.
  private(set) var tlsVersion: String?
  /// What the kernel measured of the connection that the leg opened for itself, until it was ready. Later it may be closed.
  private(set) var socket: SocketReport?
  /// How often the request was sent: libcurl does it again when a pooled connection dies without an answer.
  private(set) var sends = 0

  /// The size of chunks: below what the allocator maps and unmaps each time (mallopt(3), M_MMAP_THRESHOLD), which costs
  /// more than receiving them.
  private static let chunk = 64 * 1024
  /// Up to here, and for the same reason, a body of known length is one chunk.
  private static let wholeBody = 120 * 1024
  /// Room for most heads, so that none grows step by step.
  private static let usualHead = 512

  private(set) var status = 0
  private(set) var version = HTTPVersion.http1_1
  private(set) var isHeadComplete = false
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var head: [UInt8] = []
  @exclusivity(unchecked) private var body: [UInt8] = []
  /// Chunks before `body` that are full.
  @exclusivity(unchecked) private var chunks: [[UInt8]] = []
  /// What all of them hold together.
  private var bodyBytes = 0
  /// What the consumer had not read when it was last asked.
  var unread = 0
  private(set) var isReceivePaused = false
  private(set) var isSendPaused = false
  private var sentBytes = 0
  private var isTouched = false

  init(
    _ exchange: Exchange, easy: EasyHandle, leg: Int, endpoint: Endpoint?, proxy: String?,
    records: TurnRecords, spareChunks: SpareChunks, at now: MonotonicInstant
  ) {
    self.exchange = exchange
    self.easy = easy
    self.leg = leg
    self.endpoint = endpoint
    self.proxy = proxy
    self.records = records
    self.spareChunks = spareChunks
    started = now
  }

  /// Where the leg leads to, for messages.
  var place: String { endpoint.map { "\($0)" } ?? proxy.map { ProxyURL.shown($0) } ?? "the server" }

  /// Whether TLS waits for its turn: a probe's does, if it has any.
  var takesTurn: Bool { exchange.purpose.endsAtGate && exchange.plan.isSecure }

  private func now() -> MonotonicInstant { exchange.now() }

  private func touch() {
    if !isTouched {
      isTouched = true
      records.touched.append(self)
    }
  }

  // MARK: From callbacks

  func opened(_ descriptor: Int32) {
    self.descriptor = descriptor
    openedAt = openedAt ?? now()
    records.opened(descriptor, by: self)
  }

  func isReady(_ localPort: Int32) -> Bool {
    let verdict = exchange.gate(leg)
    self.verdict = verdict
    self.localPort = localPort
    // A replay begins anew: what is known of the connection before is of no use.
    readyAt = now()
    sentAt = nil
    if verdict == .send {
      sends += 1
      if !records.newConnections.isEmpty { records.newConnections.used(localPort) }
    } else if verdict == .lost, exchange.plan.isSecure, let descriptor, let readyAt {
      records.newConnections.add(descriptor, localPort: localPort, at: readyAt)
    }
    tlsVersion = OpenSSL.loaded?.version(of: easy)
    socket = descriptor.flatMap { SocketReport(of: $0) }
    records.ready.append(self)
    return verdict == .send
  }

  func receive(header line: UnsafeRawBufferPointer) {
    if firstByteAt == nil { firstByteAt = now() }
    // Trailers come through here too; they are not part of the head (RFC 9110, section 6.5.1).
    guard !isHeadComplete else { return }
    if let start = StatusLine(line) {
      status = start.status
      version = start.version
      head.removeAll(keepingCapacity: true)
      head.reserveCapacity(Self.usualHead)
    } else if line.first == 0x0d || line.first == 0x0a {
      // 1xx announces another head; 101 would be the last one of HTTP, but is never asked for.
      guard status >= 200 else { return }
      isHeadComplete = true
      touch()
    } else {
      head.append(contentsOf: line)
    }
  }

  /// Takes a piece of the body, unless the consumer is too far behind.
  func receive(body bytes: UnsafeRawBufferPointer) -> Bool {
    touch()
    guard unread + bodyBytes < exchange.bodyBuffer else {
      isReceivePaused = true
      return false
    }
    if body.isEmpty {
      // A body that comes at once gets what it needs.
      let length = contentLength ?? .max
      if length > Self.wholeBody {
        body = spareChunks.take(Self.chunk)
      } else if bytes.count < length {
        body.reserveCapacity(length)
      }
    } else if body.count + bytes.count > max(Self.chunk, body.capacity) {
      chunks.append(body)
      body = spareChunks.take(Self.chunk)
    }
    body.append(contentsOf: bytes)
    bodyBytes += bytes.count
    return true
  }

  func fill(_ buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
    let step = exchange.fill(buffer, from: sentBytes)
    switch step {
    case .bytes(let count):
      sentBytes += count
      sentAt = now()
    case .notYet: isSendPaused = true
    case .failed: break
    }
    return step
  }

  func rewind(to offset: Int64) -> Bool {
    guard offset == 0, sentBytes == 0 || !exchange.request.body.isStream else { return false }
    sentBytes = 0
    return true
  }

  // MARK: After callbacks

  /// Takes what has come of the body, chunk by chunk.
  func takeChunks() -> [[UInt8]] {
    defer {
      body = []
      chunks = []
      bodyBytes = 0
    }
    if !body.isEmpty { chunks.append(body) }
    for chunk in chunks where chunk.capacity >= Self.chunk { spareChunks.handOut(chunk) }
    return chunks
  }

  /// Takes what has come of the body as one.
  func takeBody() -> [UInt8] {
    defer {
      body = []
      chunks = []
      bodyBytes = 0
    }
    if chunks.isEmpty { return body }
    var whole: [UInt8] = []
    whole.reserveCapacity(bodyBytes)
    for chunk in chunks { whole += chunk }
    whole += body
    return whole
  }

  func takeHead() -> ResponseHead {
    defer { head = [] }
    return ResponseHead(status: status, version: version, lines: head)
  }

  /// Tells that what was received has been looked at.
  func settled() { isTouched = false }

  /// Goes on with the directions that have reason to: libcurl sets both at once (curl_easy_pause(3)).
  func unpause(receive: Bool, send: Bool) {
    let wasPaused = isReceivePaused || isSendPaused
    if receive { isReceivePaused = false }
    if send { isSendPaused = false }
    guard wasPaused else { return }
    var mask = CURLPAUSE_CONT
    if isReceivePaused { mask |= CURLPAUSE_RECV }
    if isSendPaused { mask |= CURLPAUSE_SEND }
    curl_easy_pause(easy.raw, mask)
  }

  private var contentLength: Int? {
    var length: curl_off_t = -1
    netopt_getinfo_off(easy.raw, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
    return length < 0 ? nil : Int(length)
  }

  // MARK: Times

  /// When the TLS handshake was done, if this leg did that: the gate comes right behind it.
  var securedAt: MonotonicInstant? {
    descriptor != nil && exchange.plan.isSecure ? readyAt : nil
  }

  /// What the phases took so far. Each ends where the next begins, so that none is counted twice or lost.
  func timings(until now: MonotonicInstant, lookUp: Duration) -> Timings {
    let ready = readyAt ?? now
    let opened = min(openedAt ?? ready, ready)
    let connected = min(max(connectedAt ?? opened, opened), ready)
    let first = max(firstByteAt ?? now, ready)
    let sent = min(max(sentAt ?? ready, ready), first)
    func nanoseconds(from a: MonotonicInstant, to b: MonotonicInstant) -> Int64 {
      b.nanoseconds - a.nanoseconds
    }
    var timings = Timings()
    timings.dnsNanoseconds = lookUp.nanoseconds
    timings.queueNanoseconds =
      nanoseconds(from: exchange.context.started, to: opened) - timings.dnsNanoseconds
    if exchange.plan.isSecure {
      timings.connectNanoseconds = nanoseconds(from: opened, to: connected)
      timings.tlsNanoseconds = nanoseconds(from: connected, to: ready)
    } else {
      timings.connectNanoseconds = nanoseconds(from: opened, to: ready)
    }
    timings.sendNanoseconds = nanoseconds(from: ready, to: sent)
    timings.waitNanoseconds = nanoseconds(from: sent, to: first)
    timings.transferNanoseconds = nanoseconds(from: first, to: max(now, first))
    return timings
  }
}

/// The first line of a response's head, as libcurl hands it over: `HTTP/1.1 200 OK`, `HTTP/2 200`.
private struct StatusLine {
  let version: HTTPVersion
  let status: Int

  init?(_ line: UnsafeRawBufferPointer) {
    // A field may begin with an H, but none has a slash in its name.
    guard line.count >= 9, line[0] == 0x48, line[4] == 0x2f else { return nil }
    guard let space = line.firstIndex(of: 0x20), space + 3 < line.count else { return nil }
    switch line[5] {
    case 0x31: version = line.count > 7 && line[7] == 0x30 ? .http1_0 : .http1_1
    case 0x32: version = .http2
    case 0x33: version = .http3
    default: return nil
    }
    let digits = line[(space + 1)...(space + 3)]
    guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    status = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }
}
