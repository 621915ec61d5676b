import NetOptCore
import NetOptLocking

/// What libcurl gets when it asks for more of a request's body.
enum UploadStep {
  /// So many bytes were written; none is the end.
  case bytes(Int)
  /// Nothing now.
  case notYet
  /// The body cannot be had.
  case failed
}

/// A streamed request body on its way from the caller's sequence to libcurl: a task pulls chunks and waits while more
/// than 256 KiB lie ready.
///
/// The beginning of the body is kept, so that a request which was not processed can be sent again.
final class UploadStream: Sendable {
  static let highWater = 256 * 1024
  /// How much may have been taken of a body that begins anew: what a server of HTTP/2 may be sent before it has said anything (65,535 bytes;
  /// RFC 9113, section 6.9.2), and what libcurl holds in its buffer then.
  static let mostKept = 128 * 1024

  private struct State {
    var chunks: [[UInt8]] = []
    /// How much of the first chunk has been sent.
    var offset = 0
    /// The chunks before it, as long as the body can begin anew.
    var kept: [[UInt8]] = []
    /// How much has been taken.
    var taken = 0
    var waiting = 0
    var hasEnded = false
    var failure: NetOptError?
    /// Whether libcurl found nothing and waits to be told that there is something.
    var isStarved = false
    var producer: UnsafeContinuation<Void, Never>?
  }

  private let state = Locked(State())
  private let length: Int64?
  private let makeIterator: @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>

  init(
    length: Int64?, _ makeIterator: @escaping @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>
  ) {
    self.length = length
    self.makeIterator = makeIterator
  }

  /// Whether the stream has to end before anything is sent: a body that was announced as empty is complete with the head.
  var endsFirst: Bool { length == 0 && !state.withLock { $0.hasEnded } }

  /// Why the body could not be had, once `take` has failed or the stream has ended.
  var failure: NetOptError? { state.withLock { $0.failure } }

  /// Fills a buffer with what lies ready. From the loop.
  func take(_ buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
    let (step, producer) = state.withLock { state -> (UploadStep, UnsafeContinuation<Void, Never>?) in
      if state.failure != nil { return (.failed, nil) }
      var filled = 0
      while filled < buffer.count, let chunk = state.chunks.first {
        let rest = chunk[state.offset...].prefix(buffer.count - filled)
        UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyBytes(from: rest)
        filled += rest.count
        state.offset += rest.count
        if state.offset == chunk.count {
          state.kept.append(state.chunks.removeFirst())
          state.offset = 0
        }
      }
      state.waiting -= filled
      state.taken += filled
      if state.taken > Self.mostKept { state.kept = [] }
      if filled == 0, !state.hasEnded {
        state.isStarved = true
        return (.notYet, nil)
      }
      return (.bytes(filled), state.waiting < Self.highWater ? state.producer.take() : nil)
    }
    producer?.resume()
    return step
  }

  /// Whether the body can begin anew.
  var canRewind: Bool { state.withLock { $0.taken <= Self.mostKept } }

  /// Has the body begin anew. From the loop.
  ///
  /// - Returns: whether it can.
  func rewind() -> Bool {
    state.withLock { state in
      guard state.taken <= Self.mostKept else { return false }
      state.chunks.insert(contentsOf: state.kept, at: 0)
      state.waiting += state.taken
      (state.kept, state.taken, state.offset) = ([], 0, 0)
      return true
    }
  }

  /// Pulls the sequence to its end, once.
  ///
  /// With the last byte that was announced a server takes the body for whole. The chunk that brings it is therefore sent only when
  /// the sequence has ended there: one that goes on is an error before the server can answer as if it had everything.
  ///
  /// - Parameter wake: called when libcurl waits for what has just come.
  func pump(_ wake: @Sendable () -> Void) async {
    if state.withLock({ $0.hasEnded }) { return }
    var iterator = makeIterator()
    var total: Int64 = 0
    var last: [UInt8] = []
    do {
      while let chunk = try await iterator.next(), !Task.isCancelled {
        total += Int64(chunk.count)
        if let length, total > length { break }
        if chunk.isEmpty { continue }
        if total == length {
          last = chunk
          continue
        }
        if append(chunk) { wake() }
        await makeRoom()
      }
      if let length, total != length {
        let kind = total > length ? "at least \(total)" : "\(total)"
        end(
          failure: NetOptError(
            .invalidRequest, phase: .send, "the body's stream has \(kind) bytes, \(length) were announced"))
      } else {
        if !last.isEmpty { _ = append(last) }
        end(failure: nil)
      }
    } catch {
      end(
        failure: NetOptError(
          .sendFailed, phase: .send, "the body's stream failed before its end: \(error)"))
    }
    wake()
  }

  private func append(_ chunk: [UInt8]) -> Bool {
    state.withLock { state in
      state.chunks.append(chunk)
      state.waiting += chunk.count
      defer { state.isStarved = false }
      return state.isStarved
    }
  }

  private func makeRoom() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { (producer: UnsafeContinuation<Void, Never>) in
        let mustWait = state.withLock { state in
          guard state.waiting >= Self.highWater, !Task.isCancelled else { return false }
          state.producer = producer
          return true
        }
        if !mustWait { producer.resume() }
      }
    } onCancel: {
      state.withLock { $0.producer.take() }?.resume()
    }
  }

  private func end(failure: NetOptError?) {
    state.withLock { state in
      state.hasEnded = true
      state.failure = failure
      state.isStarved = false
    }
  }
}
