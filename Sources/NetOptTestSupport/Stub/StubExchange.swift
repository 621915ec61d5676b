import NetOptCore

/// Sends the request on a connection that has won, and gets the answer, the way the script says.
struct StubExchange: Sendable {
  let request: NetOptRequest
  let place: StubTransport.Place
  let transport: StubTransport

  /// Performs the exchange.
  ///
  /// - Returns: the answer or what was in its way; `nil` when the task was cancelled.
  func run() async -> Result<StubResponse, NetOptError>? {
    do {
      let body = try await wholeBody()
      let address: IPAddress? = if case .address(let address) = place { address } else { nil }
      let clock = transport.timeSource
      // Before the test can see that the request was received: it may move the clock at once.
      let received = clock.now()
      let outcome = transport.state.update { state in
        state.received.append(.init(request: request, body: body, address: address))
        return state.outcomes[place] ?? .refuse
      }
      if outcome.answerTime > .zero { try await clock.sleep(until: received + outcome.answerTime) }
      switch outcome.answer(request, body) {
      case .response(let response): return .success(response)
      case .silence: return nil
      case .reset:
        return .failure(
          NetOptError(
            .sendFailed, phase: .send, "the connection was reset before an answer began",
            isRetryable: request.mayBeRepeated))
      }
    } catch let error as NetOptError {
      return .failure(error)
    } catch is CancellationError {
      return nil
    } catch {
      return .failure(
        NetOptError(.sendFailed, phase: .send, "the request's body could not be read: \(error)"))
    }
  }

  private func wholeBody() async throws -> [UInt8] {
    switch request.body.source {
    case .none: return []
    case .bytes(let bytes): return bytes
    case .stream(let length, let makeIterator):
      var body: [UInt8] = []
      var iterator = makeIterator()
      while let chunk = try await iterator.next() { body += chunk }
      if let length, length != body.count {
        throw NetOptError(
          .invalidRequest, phase: .send, "the body has \(body.count) bytes, not \(length) as was announced")
      }
      return body
    }
  }
}
