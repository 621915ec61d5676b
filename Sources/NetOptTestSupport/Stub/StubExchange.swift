import NetOptCore

/// Sends the request on the connection that won the race, and gets the outcome from the script.
struct StubExchange: Sendable {
  let request: NetOptRequest
  /// The destination of the connection.
  let destination: StubTransport.Destination
  let transport: StubTransport

  /// Performs the exchange.
  ///
  /// - Returns: the response or the error; `nil` when the script sends no response (`StubAnswer.silence`),
  ///   and when the task was cancelled.
  func run() async -> Result<StubResponse, NetOptError>? {
    do {
      let body = try await wholeBody()
      let address: IPAddress? = if case .address(let address) = destination { address } else { nil }
      let clock = transport.timeSource
      // Read the clock before the test can see the request in `received`, because the test may then advance
      // the clock.
      let received = clock.now()
      let outcome = transport.state.update { state in
        state.received.append(.init(request: request, body: body, address: address))
        return state.outcome(of: destination)
      }
      if outcome.answerTime > .zero { try await clock.sleep(until: received + outcome.answerTime) }
      switch outcome.answer(request, body) {
      case .response(let response): return .success(response)
      case .silence: return nil
      case .reset:
        return .failure(
          NetOptError(
            .sendFailed, phase: .send, "the connection was reset before the response began",
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

  /// Reads the whole body of the request.
  ///
  /// - Throws: `invalidRequest` when a stream has another length than it announced; the errors of the stream.
  private func wholeBody() async throws -> [UInt8] {
    switch request.body.source {
    case .none: return []
    case .bytes(let bytes): return bytes
    case .stream(let length, _, let makeIterator):
      var body: [UInt8] = []
      var iterator = makeIterator(.sending)
      while let chunk = try await iterator.next() { body += chunk }
      if let length, length != body.count {
        throw NetOptError(
          .invalidRequest, phase: .send, "the body has \(body.count) bytes, not \(length) as was announced")
      }
      return body
    }
  }
}
