import CCurl
import NetOptCore

/// One leg of an exchange on an easy handle: it connects, asks the race at the gate, and when it has won carries
/// request and response. Confined to the loop; the methods that callbacks call only record.
final class Transfer {
  /// The call. A cycle until the transfer ends: what libcurl still records of it must find the call.
  let exchange: Exchange
  let easy: EasyHandle
  let leg: Int
  let endpoint: IPEndpoint?
  let proxy: String?
  /// The connections that it may use.
  let connectionClass: ConnectionClass
  /// Whether it uses none that is open already.
  let opensNew: Bool
  let bundles: OriginBundles
  let records: TurnRecords

  let started: MonotonicInstant
  private(set) var openedAt: MonotonicInstant?
  /// When TCP was connected, if this leg did that. libcurl's own time is zero until TLS is done as well.
  var connectedAt: MonotonicInstant?
  /// For how long the leg, a probe's, then waited for its turn to begin TLS.
  var waitForTurn = Duration.zero
  var readyAt: MonotonicInstant?
  var sentAt: MonotonicInstant?
  private(set) var firstByteAt: MonotonicInstant?

  /// The socket that the leg opened for itself; `nil` on a pooled connection.
  private(set) var descriptor: Int32?
  /// Why the leg could not open one: libcurl does not keep that.
  private(set) var socketError: Int32?
  var verdict: Race.Verdict?
  /// Why the connection is not used, when it is not.
  var refusal: GateRefusal?
  /// The connection on which the transfer came to the gate; `nil` when it is not known.
  var connection: LiveConnection?
  /// What limits how much of it is read, while the transfer is one of its streams.
  var streamReader: RecordReader?
  /// The port on this side of the connection, which tells it apart from others to the endpoint.
  var localPort: Int32 = 0
  /// Whether the connection speaks HTTP/2; `nil` when that shows in the answer.
  var speaksHTTP2: Bool?
  /// The version of TLS, asked for while the connection is the transfer's own: afterwards libcurl does not tell.
  var tlsVersion: String?
  /// The server's certificate, on a connection that the leg opened for itself.
  var certificate: PeerCertificate?
  /// The TLS connection to a proxy that the leg opened for plain HTTP.
  var proxyTLS: ProxyTLS?
  /// What the kernel measured of the connection that the leg opened for itself, until it was ready. Later it may be closed.
  var socket: SocketReport?
  /// What is known of the request that was sent last.
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) var sent = SentRequest()
  /// How the request was lost that libcurl wanted to send again.
  var lastLoss = RequestLoss()

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private(set) var head = ResponseHeadReader()
  @exclusivity(unchecked) private var body: ReceivedBody
  /// What is wrong with the response, when something is.
  private(set) var fault: ResponseFault?
  private(set) var chunks = ChunkReader()
  /// Why nghttp2 gave the stream up, when it did.
  private(set) var http2Fault: HTTP2Fault?
  /// Undoes the body's content coding, once the body has begun.
  @exclusivity(unchecked) private(set) var decoder: ContentDecoder?
  private(set) var hasBody = false
  /// How many bytes of the body libcurl has handed over, before they were decoded.
  private(set) var receivedBytes = 0
  /// How many bytes of an HTTP/1.1 answer's body libcurl has read, unless its chunks are followed.
  private(set) var readBytes = 0
  /// What the stream's DATA frames had, and whether one ended it; nothing where frames are not seen.
  var frames = ReceivedFrames()
  /// How far a stream is that ended before the request was sent whole.
  enum EarlyEnd { case none, answered, closed }
  private(set) var earlyEnd = EarlyEnd.none
  /// How much of a piece of the body was decoded before the transfer paused: libcurl hands over all of it again.
  private var decodedOfPiece = 0
  /// What the consumer had not read when it was last asked.
  var unread = 0
  private(set) var isReceivePaused = false
  /// Whether it paused because the turn's time for bodies is used up (`ReceivingTurn`), and not because its reader is behind.
  @exclusivity(unchecked) var waitsForTurn = false
  /// Whether it ever paused, so that libcurl may still keep a piece of the body.
  private(set) var hasPaused = false
  private(set) var isSendPaused = false
  /// How often libcurl has said that it goes on while a connection was being opened; `nil` when none is.
  var tunnelReads: Int? = 0
  /// Whether what still comes is dropped.
  private var isDiscarding = false
  /// How much of the request's body libcurl has taken, and whether it took its end.
  private(set) var sentBytes = 0
  private var sentEnd = false
  private var isTouched = false

  /// - Parameters:
  ///   - bundles: those of the request's origin.
  ///   - opensNew: whether no connection is used that is open already.
  init(
    _ exchange: Exchange, easy: EasyHandle, leg: Int, endpoint: IPEndpoint?, proxy: String?,
    bundles: OriginBundles, opensNew: Bool, records: TurnRecords, spareChunks: SpareChunks,
    at now: MonotonicInstant
  ) {
    self.exchange = exchange
    self.easy = easy
    self.leg = leg
    self.endpoint = endpoint
    self.proxy = proxy
    self.bundles = bundles
    self.opensNew = opensNew
    self.records = records
    connectionClass = bundles.connectionClass(
      for: exchange.request.options.version, to: endpoint,
      isAlone: exchange.purpose == .probe && exchange.request.options.connection == .fresh, at: now)
    body = ReceivedBody(spareChunks)
    started = now
  }

  /// Whether TLS waits for its turn: a probe's does, if it has any.
  var takesTurn: Bool { exchange.purpose.endsAtGate && exchange.plan.isSecure }

  var isHeadComplete: Bool { head.isComplete }
  /// Whether something of an answer has come.
  var hasAnswerBegun: Bool { firstByteAt != nil || sent.isAnswered }
  var version: HTTPVersion { head.version }

  private func now() -> MonotonicInstant { exchange.now() }

  private func touch() {
    if !isTouched {
      isTouched = true
      records.touched.append(self)
    }
  }

  // MARK: From callbacks

  /// No socket could be opened.
  func couldNotOpen(_ errno: Int32) { socketError = errno }

  func opened(_ descriptor: Int32) {
    self.descriptor = descriptor
    openedAt = openedAt ?? now()
    tunnelReads = 0
    records.opened(descriptor, by: self)
  }

  /// Takes a line of a head or of trailers.
  ///
  /// - Returns: whether the transfer goes on.
  func receive(header line: UnsafeRawBufferPointer) -> Bool {
    // Of a proxy's answer to CONNECT libcurl hands over the trailers alone.
    if isDiscarding || isConnecting { return true }
    // It was found before libcurl took the line.
    guard fault == nil else { return false }
    if firstByteAt == nil {
      // The gate has seen nothing, and the kernel may have had no room for the request since.
      if connection?.hasUnaskedData == true || speaksHTTP2 == false && sent.isUnwritten {
        fault = .head(.unasked)
        return false
      }
      firstByteAt = now()
      connection?.lastAnswered = firstByteAt
      // What a head may have in all is far below what no request has claimed (`RecordBudget.unclaimed`).
      streamReader?.budget.claimed()
      sent.wasAnswered()
    }
    // Where the TLS library does not tell what was negotiated, the first answer does.
    let isMultiplexed = speaksHTTP2 ?? (line.count > 5 && line[5] == 0x32)
    let wasComplete = head.isComplete
    if isMultiplexed, head.isAtStatusLine { followLength() }
    if let fault = head.read(line, isMultiplexed: isMultiplexed) {
      self.fault = fault == .lineCut ? .headCut : .head(fault)
      return false
    }
    if head.isComplete, !wasComplete {
      speaksHTTP2 = isMultiplexed
      connection?.isMultiplexed = isMultiplexed
      if !isMultiplexed { watchTheEnd() }
      touch()
    }
    return true
  }

  /// The request is about to be sent again, by libcurl itself.
  ///
  /// - Returns: whether the answer can begin anew.
  func restartAnswer() -> Bool {
    guard !head.isComplete else {
      // libcurl drops this answer, and sends the request again without what it added itself. The field is the caller's.
      fault = head.status == 417 ? .expectationRefused : .streamCut
      return false
    }
    head.restart()
    http2Fault = nil
    firstByteAt = nil
    frames = ReceivedFrames()
    chunks = ChunkReader()
    readBytes = 0
    earlyEnd = .none
    // libcurl rewinds only a body of which it has written something, which may be less than it has taken.
    // The race refuses a stream that cannot begin anew.
    _ = rewind(to: 0)
    return true
  }

  /// libcurl is about to take a line of a head, while it is asked to say what it does.
  ///
  /// - Returns: whether the line is a fold of a field that there is not, which libcurl must not see (`foldsIntoFreedFields`).
  func mustHide(_ line: UnsafeRawBufferPointer) -> Bool {
    guard let first = line.first, first == 0x20 || first == 0x09, !head.hasFields else { return false }
    fault = .head(.firstFold)
    return true
  }

  /// libcurl has read a piece of an HTTP/1.1 answer's body, and takes it from its chunks next.
  func follow(body bytes: UnsafeRawBufferPointer) {
    guard fault == nil, head.isComplete, !hasNoBody else { return }
    guard head.framing == .chunked, CurlLibrary.showsChunks else {
      readBytes += bytes.count
      return
    }
    defer { records.receiving.read(framing: chunks.takeFraming()) }
    guard let chunkFault = chunks.read(bytes) else { return }
    fault = .chunk(chunkFault)
    // libcurl may take it for the last one, and the connection for free.
    connection?.isTainted = true
    if chunkFault.endsConnection { connection?.end() }
  }

  /// A frame came that belongs to the transfer's stream. libcurl hands over what is in it afterwards.
  ///
  /// - Parameter isEarly: whether it ends the answer before the request was sent whole.
  func received(frameOf bytes: Int, ends: Bool, isEarly: Bool) {
    sent.wasAnswered()
    // What libcurl holds back for a reader that pauses is within the stream's window, and no flood.
    if bytes > 0 { streamReader?.budget.claimed() }
    frames.add(bytes, ends: ends)
    if isEarly { earlyEnd = .answered }
  }

  /// nghttp2 has given the stream up, because what came on it breaks a rule.
  func wasRejected(_ code: UInt32) { http2Fault = HTTP2Fault(cause: .code(code), isOfConnection: false) }

  /// The stream is closed. libcurl may not look at it again when it is still sending.
  func streamClosed() {
    guard earlyEnd == .answered else { return }
    earlyEnd = .closed
    touch()
  }

  /// What becomes of a piece of the body.
  enum Reception { case taken, paused, refused }

  /// Takes a piece of the body, unless the consumer is too far behind.
  func receive(body bytes: UnsafeRawBufferPointer) -> Reception {
    if isDiscarding { return .taken }
    guard fault == nil else { return .refused }
    streamReader?.budget.claimed()
    // Once a turn is enough.
    if !isTouched { connection?.lastAnswered = now() }
    touch()
    if !hasBody {
      hasBody = true
      do throws(CodingFailure) {
        if exchange.request.options.decompress, !head.contentEncoding.isEmpty {
          decoder = try ContentDecoder(head.contentEncoding)
        }
      } catch {
        fault = .coding(error)
        return .refused
      }
    }
    guard hasRoom else { return pause() }
    guard mayReceive else { return pauseUntilNextTurn() }
    records.receiving.tookPiece()
    if decoder != nil {
      let reception = decode(bytes)
      guard reception == .taken else { return reception }
    } else {
      body.append(bytes, ofLength: length)
    }
    receivedBytes += bytes.count
    return .taken
  }

  func pause() -> Reception {
    isReceivePaused = true
    hasPaused = true
    return .paused
  }

  /// Whether more may be taken in this turn. libcurl 7.88 may end a transfer by itself whose answer ended before its upload, and keep a piece of it.
  private var mayReceive: Bool {
    !records.receiving.isOver || earlyEnd != .none || CurlLibrary.losesPausedBodies && speaksHTTP2 == false
  }

  private var hasRoom: Bool { unread + body.count < exchange.bodyBuffer }

  private var length: Int64? {
    if case .length(let length) = head.framing { return length }
    return nil
  }

  /// Decodes a piece until the consumer is too far behind. A few bytes can stand for gigabytes.
  private func decode(_ bytes: UnsafeRawBufferPointer) -> Reception {
    let skipped = min(decodedOfPiece, bytes.count)
    decodedOfPiece -= skipped
    var rest = UnsafeRawBufferPointer(rebasing: bytes[skipped...])
    return withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 1) { room in
      do throws(CodingFailure) {
        while let count = try decodeSome(&rest, into: room), count > 0 {
          body.append(UnsafeRawBufferPointer(rebasing: room[..<count]), ofLength: nil)
          if hasRoom, mayReceive { continue }
          decodedOfPiece = bytes.count - rest.count
          return hasRoom ? pauseUntilNextTurn() : pause()
        }
        return .taken
      } catch {
        fault = .coding(error)
        return .refused
      }
    }
  }

  private func decodeSome(
    _ rest: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> Int? {
    let before = decoder?.spent ?? 0
    let count = try decoder?.decode(&rest, into: room)
    records.receiving.spent += (decoder?.spent ?? 0) - before
    return count
  }

  func fill(_ buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
    let step = exchange.fill(buffer, from: sentBytes)
    switch step {
    case .bytes(let count):
      sentBytes += count
      sentEnd = count == 0
      sentAt = now()
    case .notYet: isSendPaused = true
    case .failed: break
    }
    return step
  }

  func rewind(to offset: Int64) -> Bool {
    guard offset == 0, exchange.upload?.rewind() ?? true else { return false }
    (sentBytes, sentEnd) = (0, false)
    return true
  }

  /// Whether libcurl has taken all of the request's body.
  var hasSentBody: Bool { exchange.request.body.length.map { sentBytes >= $0 } ?? sentEnd }

  // MARK: After callbacks

  /// Takes what has come of the body, chunk by chunk.
  func takeChunks() -> [[UInt8]] { body.takeChunks() }

  /// Takes what has come of the body as one.
  func takeBody() -> [UInt8] { body.takeAll() }

  func takeHead() -> ResponseHead { head.take() }

  /// Takes from libcurl what it holds back for a transfer that is paused and about to end: it would not free it.
  ///
  /// - Returns: whether it was there to be taken: libcurl gives nothing of a transfer that it has ended itself.
  func discard() -> Bool {
    guard isReceivePaused else { return true }
    isDiscarding = true
    return unpause(receive: true, send: false) == CURLE_OK
  }

  /// Tells that what was received has been looked at.
  func settled() { isTouched = false }

  /// Goes on with the directions that have reason to: libcurl sets both at once (curl_easy_pause(3)).
  @discardableResult func unpause(receive: Bool, send: Bool) -> CURLcode {
    let wasReceivePaused = isReceivePaused
    let wasPaused = isReceivePaused || isSendPaused
    if receive { isReceivePaused = false }
    if send { isSendPaused = false }
    guard wasPaused else { return CURLE_OK }
    var mask = CURLPAUSE_CONT
    if isReceivePaused { mask |= CURLPAUSE_RECV }
    if isSendPaused { mask |= CURLPAUSE_SEND }
    let code = curl_easy_pause(easy.raw, mask)
    // What libcurl holds back of a transfer that it has ended by itself is still there.
    if code != CURLE_OK, wasReceivePaused, fault == nil { isReceivePaused = true }
    return code
  }
}
