import CCurl
import Glibc
import NetOptCore

/// Why a transfer does not use the connection that libcurl gave it. Nothing of the request was written.
enum GateRefusal: Hashable {
  /// The connection speaks HTTP/1.1 and carries another transfer.
  case busy
  /// Something came on it, or it ended, since the last answer: bytes that nobody asked for are no answer
  /// (RFC 9112, section 9.2).
  case stale
  /// The peer sent something on a new connection before it was asked.
  case unasked
  /// The peer ended a new connection before it was asked.
  case ended
  /// The server has announced the end of the connection (GOAWAY).
  case leaving
  /// The connection was given up: the server had gone silent on it, or it was ended on this side.
  case givenUp

  /// Whether another connection that is open may do.
  var mayHaveOthers: Bool { self == .leaving || self == .givenUp }

  /// Whether another connection to the same endpoint may do.
  var isOfTheConnection: Bool {
    switch self {
    case .busy, .stale, .leaving, .givenUp: true
    case .unasked, .ended: false
    }
  }
}

// The gate: the connection is ready, and nothing of the request was written. Called by libcurl (CURLOPT_PREREQFUNCTION(3)).

extension Transfer {
  /// - Returns: whether the request is sent on the connection.
  func isReady(between ends: ConnectionEnds) -> Bool {
    let now = exchange.now()
    cameToGate()
    if verdict == .send {
      // libcurl repeats the request, and does not say why.
      lastLoss = loss
      _ = takeBack()
    }
    leaveConnection()
    localPort = ends.localPort
    let connection = records.live.connection(opened: descriptor, ends)
    self.connection = connection
    // A replay begins anew: what is known of the connection before is of no use.
    readyAt = now
    sentAt = nil
    // What is known of a connection does not change, and the streams of HTTP/2 need nothing else.
    let isKnown = connection?.reportsItsEnd == true && connection?.isMultiplexed == true
    if let connection, !connection.hasCarried, connection.proxyTLS == nil { connection.proxyTLS = proxyTLS }
    let tls = isKnown || !isEncrypted ? nil : TLSConnection(of: easy) ?? TLSConnection(connection?.proxyTLS)
    if isKnown {
      tlsVersion = connection?.tlsVersion
      speaksHTTP2 = true
    } else {
      tlsVersion = tls?.version
      learnVersion(from: tls, at: now)
    }
    socket = descriptor.flatMap { SocketReport(of: $0) }
    records.ready.append(self)
    refusal = exchange.maySend(leg) ? refusal(with: tls, at: now) : nil
    guard refusal == nil else { return false }
    // A stream that was refused late (RFC 9113, section 8.7) may have had half an answer.
    guard exchange.sends == 0 || restartAnswer() else { return false }
    let verdict = exchange.gate(leg)
    self.verdict = verdict
    if verdict == .send {
      exchange.sends += 1
      connection?.hasCarried = true
      streamReader = connection?.reader
      streamReader?.budget.streams += 1
      if speaksHTTP2 != true {
        connection?.carrier = self
        connection?.asks(tls?.reader)
        // For folds, chunk sizes, what follows the answer in the same read, and to see what is written.
        easy.isVerbose = true
        easy.ignoresLength = false
      }
      sent = SentRequest(seesWrites: speaksHTTP2 != true)
      if !records.newConnections.isEmpty { records.newConnections.used(localPort) }
    } else if verdict == .lost, exchange.plan.isSecure, let descriptor {
      records.newConnections.add(descriptor, localPort: localPort, at: now)
    }
    return verdict == .send
  }

  /// Its connection, when requests on it were given up because the server had gone silent.
  var silentConnection: LiveConnection? {
    guard let connection, connection.isSilent else { return nil }
    return connection
  }

  /// The transfer has nothing to do with its connection any more.
  func leaveConnection() {
    guard let connection else { return }
    if connection.carrier === self {
      // An answer came before the body, which was never sent (RFC 9110, section 10.1.1): the server takes what comes next for it.
      if !hasSentBody { connection.isTainted = true }
      connection.carrier = nil
      // What a server sends behind its answer waits for the acknowledgement of that (RFC 896), which comes with the next request when it is
      // delayed, and would be taken for that one's answer.
      if records.live[connection.descriptor] === connection { netopt_acknowledge(connection.descriptor) }
    }
    streamReader?.budget.streams -= 1
    streamReader = nil
    self.connection = nil
  }

  /// Finds out which version of HTTP the connection speaks.
  private func learnVersion(from tls: TLSConnection?, at now: MonotonicInstant) {
    guard exchange.plan.isSecure else {
      speaksHTTP2 = false
      if let tls, let connection, !connection.reportsItsEnd {
        connection.reportsItsEnd = tls.report(to: connection)
        connection.tlsVersion = tlsVersion
      }
      return
    }
    guard let tls else {
      speaksHTTP2 = connection?.isMultiplexed == true ? true : nil
      return
    }
    let isNew = connection.map { !$0.reportsItsEnd } ?? false
    if let connection, !isNew {
      speaksHTTP2 = connection.isMultiplexed
      return
    }
    let choice = tls.choseHTTP2
    speaksHTTP2 = choice
    guard let connection else { return }
    connection.isMultiplexed = choice
    connection.reportsItsEnd = tls.report(to: connection)
    connection.tlsVersion = tlsVersion
    // Streams tell what belongs to which request.
    if choice {
      tls.endWatch()
      tls.reader?.endSearch()
    }
    if choice, let reader = tls.reader?.lowest {
      reader.isActive = true
      connection.reader = reader
    }
    if connectionClass.offersHTTP2 {
      bundles.endpoint(endpoint, choseHTTP2: choice, in: connectionClass, at: now)
    }
  }

  /// Why the connection is not to be used, if it is not. HTTP/2 has streams: what comes there belongs to one of them.
  private func refusal(with tls: TLSConnection?, at now: MonotonicInstant) -> GateRefusal? {
    if speaksHTTP2 == true {
      guard let connection else { return nil }
      if connection.isGivenUp { return .givenUp }
      if connection.lastStream != nil { return .leaving }
      // It may be an answer to the stream that the request is about to open.
      return CurlLibrary.readsIdleConnectionsSeldom && connection.hasCarried && connection.isIdle
        && connection.hasArrivals ? .stale : nil
    }
    guard let connection else {
      // Whether somebody else uses it cannot be told, and libcurl asks only where it takes the connection for HTTP/2.
      return connectionClass.offersHTTP2 && descriptor == nil ? .busy : nil
    }
    // Without an offer of HTTP/2 libcurl gives nobody a connection that is in use.
    if connectionClass.offersHTTP2, let carrier = connection.carrier, carrier.holdsConnection { return .busy }
    if connection.isEnded || connection.isTainted { return .stale }
    if connection.carrier?.hasSentBody == false { return .stale }
    if let quiet = connection.isQuietFrom, now < quiet { return .stale }
    if connection.hasCarried, let limit = bundles.idleLimit(of: endpoint, at: now),
      let silence = CurlMulti.progress(of: connection.descriptor)?.silence, silence >= limit
    {
      return .stale
    }
    switch connection.arrival(with: tls, isDirect: proxy == nil || !exchange.plan.isSecure) {
    case .nothing: return nil
    case .data: return connection.hasCarried ? .stale : .unasked
    case .end: return connection.hasCarried ? .stale : .ended
    }
  }

  /// Whether libcurl still has the transfer on its connection, which it leaves before its end is told here.
  fileprivate var holdsConnection: Bool { OpenSSL.loaded == nil || TLSConnection(of: easy) != nil }
}

extension LiveConnection {
  /// Whether it is known to carry nothing.
  var isIdle: Bool {
    isMultiplexed ? reader?.budget.streams == 0 : carrier == nil
  }

  /// Whether something came on it that was not read, or its end.
  var hasArrivals: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, netopt_peek_without_waiting)
    return count >= 0 || errno != EAGAIN && errno != EINTR || reader?.hasBufferedData == true
  }

  /// What came on a connection on which nothing was to come.
  enum Arrival { case nothing, data, end }

  /// Looks what came.
  ///
  /// - Parameter isDirect: whether TLS, if there is any, is right above the socket.
  func arrival(with tls: TLSConnection?, isDirect: Bool) -> Arrival {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, netopt_peek_without_waiting)
    hasUnreadBytes = count > 0
    let hasEnded = count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    if hasEnded { return .end }
    guard let tls else { return count > 0 ? .data : .nothing }
    // Bytes of TLS need not be data: session tickets come whenever the peer likes.
    // Right behind the handshake the connection to a proxy may hold tickets of the server's.
    let isBuffered = tls.hasBufferedData || hasCarried && tls.reader?.hasBufferedData == true
    // What comes until the end of a renegotiation would come before the request, which cannot be written.
    if tls.isInHandshake { return .data }
    if count < 0, !isBuffered { return .nothing }
    // Behind the handshake come tickets that libcurl is to keep, and it can do so only when it reads them itself. Whether it reads something else
    // there shows in the answer (`hasUnaskedData`).
    // Nor can the gate tell records of a proxy's own from the server's.
    if !hasCarried, !isBuffered, !isDirect || tls.version == "TLSv1.3" { return .nothing }
    if isBuffered { return .data }
    guard let hasData = tls.hasUnreadData(on: isDirect ? descriptor : nil) else { return .end }
    return hasData || tls.isInHandshake ? .data : .nothing
  }
}
