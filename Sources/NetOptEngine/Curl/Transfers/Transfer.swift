import CCurl
import NetOptCore

/// The libcurl transfer of one leg. The transfer connects and asks the race at the gate. If its leg wins, the
/// transfer carries request and response. Confined to the event loop. The methods that libcurl's callbacks
/// call record events. They also return the answers that libcurl waits for, such as the decision of the gate.
final class Transfer {
  /// The call. Call and transfer refer to each other until the transfer ends: libcurl's callbacks need both.
  let exchange: Exchange
  let easy: EasyHandle
  /// The leg's index in `Race.legs`.
  let leg: Int
  /// The endpoint to connect to; `nil` for a leg through a proxy.
  let endpoint: IPEndpoint?
  /// The URL of the proxy; `nil` for none.
  let proxy: String?
  /// The connections of libcurl's pool that the transfer may use.
  let connectionClass: ConnectionClass
  /// Whether the transfer opens a new connection and uses no pooled one.
  let opensNew: Bool
  let bundles: OriginBundles
  private let clientTLS: ClientTLS
  /// Whether a TLS connection on the last socket that the leg opened has been set up.
  private var hasBegunTLS = false
  let callbackState: CallbackState

  /// When the leg first opened a socket; `nil` on a pooled connection.
  private(set) var openedAt: MonotonicInstant?
  /// When TCP connected, if this leg opened the connection. libcurl's own time stays zero until TLS is done.
  var connectedAt: MonotonicInstant?
  /// How long the leg of a probe waited, with TCP connected, for its turn to begin TLS (`Handshakes`).
  var waitForTurn = Duration.zero
  /// When the transfer last reached the gate; `nil` before.
  var readyAt: MonotonicInstant?
  /// When libcurl last took bytes of the request's body, or its end; `nil` before.
  var sentAt: MonotonicInstant?
  /// When the first line of the response head came; `nil` before.
  private(set) var firstByteAt: MonotonicInstant?

  /// The socket that the leg opened last; `nil` on a pooled connection.
  private(set) var descriptor: Int32?
  /// Whether the leg opened several sockets: to several addresses of a proxy, or for a resend.
  private(set) var hasSeveralSockets = false
  /// The `errno` of a failed attempt to open a socket. libcurl does not keep it.
  private(set) var socketError: Int32?
  /// The race's answer at the gate; `nil` before the transfer reaches the gate.
  var verdict: Race.Verdict?
  /// Why the gate refused the connection; `nil` when it did not.
  var refusal: GateRefusal?
  /// The connection on which the transfer reached the gate; `nil` when netopt does not know it.
  var connection: LiveConnection?
  /// Limits how much libcurl reads from the connection while the transfer is one of its HTTP/2 streams.
  var streamReader: RecordReader?
  /// The connection's local port, which tells apart connections to one endpoint; 0 before the gate.
  var localPort: Int32 = 0
  /// Whether the connection speaks HTTP/2; `nil` while only the response can show it.
  var speaksHTTP2: Bool?
  /// The TLS version, read at the gate: libcurl does not give it once the transfer has left the connection.
  var tlsVersion: String?
  /// The server's certificate, if the leg opened the connection.
  private(set) var certificate: PeerCertificate?
  /// The TLS connection to a proxy that the leg opened for plain HTTP.
  var proxyTLS: ProxyTLS?
  /// The kernel's measurements of the socket that the leg opened, read at the gate.
  var socket: SocketReport?
  /// The progress of the request's last sending, as netopt sees it. Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) var sent = SentRequest()
  /// How the request was lost before libcurl tried to send it again.
  var lastLoss = RequestLoss()

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private(set) var head = ResponseHeadReader()
  @exclusivity(unchecked) private var body: ReceivedBody
  /// The fault of the response; `nil` when it has none.
  var fault: ResponseFault?
  private(set) var chunks = ChunkReader()
  /// Why nghttp2 rejected the stream; `nil` when it did not.
  private(set) var http2Fault: HTTP2Fault?
  /// Decodes the body's content coding; set when the body begins.
  @exclusivity(unchecked) private(set) var decoder: ContentDecoder?
  /// Whether libcurl has delivered a part of the body.
  private(set) var hasBodyBytes = false
  /// How many bytes of the body libcurl has delivered, before content decoding.
  private(set) var receivedBytes = 0
  /// How many bytes of an HTTP/1.1 response's body libcurl has read. `chunks` counts chunked bodies instead.
  private(set) var readBytes = 0
  /// The size of the stream's DATA frames, and whether END_STREAM came. Empty if netopt sees no frames.
  var frames = ReceivedFrames()
  /// `answered`: the response ended before the request was sent whole. `closed`: the stream has closed since.
  enum EarlyEnd { case none, answered, closed }
  private(set) var earlyEnd = EarlyEnd.none
  /// How many bytes of a piece were decoded before the transfer paused. libcurl delivers all of it again.
  private var decodedOfPiece = 0
  /// How many bytes the consumer had not read at the last delivery.
  var unread = 0
  private(set) var isReceivePaused = false
  /// Whether the transfer paused for the turn's time limit (`ReceivingTurn`), not for a slow reader.
  @exclusivity(unchecked) var waitsForTurn = false
  /// Whether the transfer ever paused. libcurl may then still hold a piece of the body.
  private(set) var hasPaused = false
  /// Whether libcurl waits for more of the request's body.
  var isSendPaused = false
  /// How often libcurl called the progress callback while opening a connection; `nil` when it opens none.
  var tunnelReads: Int? = 0
  /// Whether the transfer drops what libcurl still delivers.
  private var isDiscarding = false
  /// How much of the request's body libcurl and nghttp2 have taken.
  var sentBody = SentBody()
  /// Whether the transfer is in `callbackState.touched`.
  private var isTouched = false

  init(
    _ exchange: Exchange, easy: EasyHandle, leg: Int, endpoint: IPEndpoint?, proxy: String?,
    bundles: OriginBundles, tls: ClientTLS, opensNew: Bool, callbackState: CallbackState,
    spareChunks: SpareChunks, at now: MonotonicInstant
  ) {
    self.exchange = exchange
    self.easy = easy
    self.leg = leg
    self.endpoint = endpoint
    self.proxy = proxy
    self.bundles = bundles
    clientTLS = tls
    self.opensNew = opensNew
    self.callbackState = callbackState
    connectionClass = bundles.connectionClass(
      for: exchange.request.options.version, to: endpoint,
      isAlone: exchange.purpose == .probe && exchange.request.options.connection == .fresh, at: now)
    body = ReceivedBody(spareChunks)
  }

  /// Whether the transfer must wait for its turn to begin TLS: probes and warm-ups of HTTPS origins must.
  var takesTurn: Bool { exchange.purpose.endsAtGate && exchange.plan.isSecure }

  var isHeadComplete: Bool { head.isComplete }
  /// Whether a part of a response has come, an interim response included.
  var hasAnswerBegun: Bool { firstByteAt != nil || sent.responseBegan }
  var version: HTTPVersion { head.version }
  private func now() -> MonotonicInstant { exchange.now() }

  private func touch() {
    guard !isTouched else { return }
    isTouched = true
    callbackState.touched.append(self)
  }

  // MARK: From callbacks

  func couldNotOpen(_ errno: Int32) { socketError = errno }

  func opened(_ descriptor: Int32) {
    if self.descriptor != nil { hasSeveralSockets = true }
    self.descriptor = descriptor
    openedAt = openedAt ?? now()
    tunnelReads = 0
    hasBegunTLS = false
    callbackState.opened(descriptor, by: self)
  }

  /// Applies the client's TLS settings to the context of a new connection. With a proxy over TLS, the first
  /// connection on a socket is that to the proxy.
  ///
  /// - Returns: false when OpenSSL refuses the client certificate.
  func configureTLS(of context: OpaquePointer) -> Bool {
    let isOfProxy = !hasBegunTLS && proxy.map(ProxyURL.isSecure) == true
    hasBegunTLS = true
    guard let tls = clientTLS.apply(isOfProxy ? nil : bundles.tls, to: context) else { return false }
    certificate = PeerCertificate.attach(to: context, verifiedBy: tls)
    // Then nothing parses the authorities when the certificate comes.
    if certificate == nil { tls.trust?.store?.parse() }
    return true
  }

  /// Takes a line of a response head or of trailers. Returns whether the transfer continues.
  func receive(header line: UnsafeRawBufferPointer) -> Bool {
    // libcurl delivers only the trailers of a proxy's response to CONNECT. They are ignored.
    if isDiscarding || isConnecting { return true }
    // `mustHide` or `follow` found the fault before libcurl took the line.
    guard fault == nil else { return false }
    if firstByteAt == nil {
      // The gate saw no data, yet this is no response to the request: it began to arrive before the request
      // was sent, or no byte of the request was written so far, because the socket had no room.
      if connection?.hasUnsolicitedData == true || speaksHTTP2 == false && sent.isUnwritten {
        fault = .head(.unsolicited)
        return false
      }
      firstByteAt = now()
      connection?.lastAnswered = firstByteAt
      // One call per head suffices: a head has fewer bytes than a flood (`RecordBudget.mostUnclaimed`).
      streamReader?.budget.claimed()
      sent.receivedResponse()
    }
    // Where netopt cannot ask TLS for the negotiated version, the status line shows it: `HTTP/2 200`.
    let isMultiplexed = speaksHTTP2 ?? (line.count > 5 && line[5] == 0x32)
    let wasComplete = head.isComplete
    if isMultiplexed, head.isAtStatusLine { chooseEndDetection() }
    if let fault = head.read(line, isMultiplexed: isMultiplexed) {
      self.fault = fault == .lineCut ? .headCut : .head(fault)
      return false
    }
    if head.isComplete, !wasComplete {
      speaksHTTP2 = isMultiplexed
      connection?.isMultiplexed = isMultiplexed
      if !isMultiplexed { guardNextResponse() }
      touch()
    }
    return true
  }

  /// Clears the response before the request is sent again.
  ///
  /// - Returns: whether a new response can begin; false when a complete head has come.
  func restartAnswer() -> Bool {
    guard !head.isComplete else {
      // After a 417, libcurl sends the request again without its own Expect. This Expect is the caller's.
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
    // libcurl does not rewind a body that it has read from netopt but not yet written to the socket, so
    // netopt rewinds it. The race does not resend a stream that cannot be rewound.
    _ = rewind(to: 0)
    return true
  }

  /// Checks a line of a head before libcurl parses it. Called only while the handle is verbose.
  ///
  /// - Returns: whether to hide a fold that comes before any field (`CurlLibrary.foldsIntoFreedFields`).
  func mustHide(_ line: UnsafeRawBufferPointer) -> Bool {
    guard let first = line.first, first == 0x20 || first == 0x09, !head.hasFields else { return false }
    fault = .head(.firstFold)
    return true
  }

  /// Follows a piece of an HTTP/1.1 response's body that libcurl has read and decodes next.
  func follow(body bytes: UnsafeRawBufferPointer) {
    guard fault == nil, head.isComplete, !hasNoBody else { return }
    guard head.framing == .chunked, CurlLibrary.showsChunks else {
      readBytes += bytes.count
      return
    }
    defer { callbackState.receiving.read(framing: chunks.takeFraming()) }
    guard let chunkFault = chunks.read(bytes) else { return }
    fault = .chunk(chunkFault)
    // libcurl may take the faulty chunk for the last one, and use the connection again.
    connection?.isTainted = true
    if chunkFault.endsConnection { connection?.end() }
  }

  /// Records a frame of the transfer's stream. libcurl delivers the frame's content afterwards.
  ///
  /// - Parameter isEarly: whether the frame ends the response before the request was sent whole.
  func received(frameOf bytes: Int, ends: Bool, isEarly: Bool) {
    sent.receivedResponse()
    // The data is no flood, even if libcurl holds it back for a paused reader: the stream's window limits it.
    if bytes > 0 { streamReader?.budget.claimed() }
    frames.add(bytes, ends: ends)
    if isEarly { earlyEnd = .answered }
  }

  /// Records that nghttp2 rejected the stream because its data breaks a rule.
  func wasRejected(_ code: UInt32) { http2Fault = HTTP2Fault(cause: .code(code), isOfConnection: false) }

  /// Records that the stream is closed. After an early response, libcurl may never look at the stream again.
  func streamClosed() {
    guard earlyEnd == .answered else { return }
    earlyEnd = .closed
    touch()
  }

  /// The reaction to a piece of the body: taken, to be delivered again, or the end of the transfer.
  enum Reception { case taken, paused, refused }

  /// Takes a piece of the body. Pauses when the consumer is too far behind or the turn's time is used up.
  func receive(body bytes: UnsafeRawBufferPointer) -> Reception {
    if isDiscarding { return .taken }
    guard fault == nil else { return .refused }
    streamReader?.budget.claimed()
    // Reads the clock once per turn: the transfer stays touched until its data is delivered.
    if !isTouched { connection?.lastAnswered = now() }
    touch()
    if !hasBodyBytes {
      hasBodyBytes = true
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
    callbackState.receiving.chargePiece()
    if decoder != nil {
      let reception = decode(bytes)
      guard reception == .taken else { return reception }
    } else {
      body.append(bytes, ofLength: length)
    }
    receivedBytes += bytes.count
    callbackState.counter.received(bytes.count)
    return .taken
  }

  func pause() -> Reception {
    isReceivePaused = true
    hasPaused = true
    return .paused
  }

  /// Whether the turn's time limit lets the transfer take more. Always true where a pause can lose data:
  /// libcurl 7.88 may end a transfer whose response ended before its upload, and keep a piece of the body.
  private var mayReceive: Bool {
    !callbackState.receiving.isOver || earlyEnd != .none
      || CurlLibrary.losesPausedBodies && speaksHTTP2 == false
  }

  /// Whether fewer bytes are unread than the limit at which the transfer pauses.
  private var hasRoom: Bool { unread + body.count < exchange.bodyBuffer }
  /// The length of the body in bytes that the head announces; `nil` if it announces none.
  private var length: Int64? {
    if case .length(let length) = head.framing { return length }
    return nil
  }

  /// Decodes a piece until the consumer is too far behind. A few bytes can decode to gigabytes.
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

  /// Decodes the next bytes of `rest`, and adds the time to the turn. Returns the number of decoded bytes.
  private func decodeSome(
    _ rest: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> Int? {
    let before = decoder?.spent ?? 0
    let count = try decoder?.decode(&rest, into: room)
    callbackState.receiving.spent += (decoder?.spent ?? 0) - before
    return count
  }

  // MARK: After callbacks

  func takeChunks() -> [[UInt8]] { body.takeChunks() }
  func takeBody() -> [UInt8] { body.takeAll() }
  func takeHead() -> ResponseHead { head.take() }

  /// Takes and drops the data that libcurl holds back for a paused transfer. libcurl would not free it.
  ///
  /// - Returns: whether nothing is held back now. libcurl gives no data of a transfer that it ended itself.
  func discard() -> Bool {
    guard isReceivePaused else { return true }
    isDiscarding = true
    return unpause(receive: true, send: false) == CURLE_OK
  }

  /// Records that this turn's data was delivered. New data puts the transfer in `touched` again.
  func markDelivered() { isTouched = false }

  /// Resumes the given directions. libcurl sets both at once (curl_easy_pause(3)).
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
    // libcurl has ended the transfer by itself, and keeps the data that it holds back.
    if code != CURLE_OK, wasReceivePaused, fault == nil { isReceivePaused = true }
    return code
  }
}
