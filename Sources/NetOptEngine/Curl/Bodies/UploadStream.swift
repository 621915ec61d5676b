import NetOptCore
import NetOptLocking

/// The result when libcurl asks for more of a request's body.
enum UploadStep {
  /// This many bytes were written. 0 is the end of the body.
  case bytes(Int)
  /// No bytes are available yet.
  case notYet
  /// The body failed.
  case failed
}

/// Carries a streamed request body from the caller's sequence to libcurl. A task pulls chunks, and waits
/// while 256 KiB or more are ready.
///
/// The stream keeps the beginning of the body, so that a request that was not processed can be sent again.
final class UploadStream: Sendable {
  static let highWater = 256 * 1024
  /// The most bytes that libcurl may have taken if the body is to begin again. This covers the bytes that an
  /// HTTP/2 client may send before the server's first answer (65,535 bytes; RFC 9113, section 6.9.2), plus
  /// libcurl's send buffer at that time.
  static let mostKept = 128 * 1024

  private struct State {
    var chunks: [[UInt8]] = []
    /// The number of bytes of the first chunk that libcurl has taken.
    var offset = 0
    /// The chunks before the first one, as long as the body can begin again.
    var kept: [[UInt8]] = []
    /// The number of bytes that libcurl has taken.
    var taken = 0
    var waiting = 0
    var hasEnded = false
    var failure: NetOptError?
    /// Whether libcurl found no bytes and waits for a wake-up.
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

  /// Whether the sequence must end before anything is sent. With an announced length of 0, the body is
  /// complete as soon as the head is sent.
  var endsFirst: Bool { length == 0 && !state.withLock { $0.hasEnded } }

  /// Why the body failed, once `take` has failed or the sequence has ended.
  var failure: NetOptError? { state.withLock { $0.failure } }

  /// Fills a buffer with the bytes that are ready. Called on the loop's thread.
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

  /// Whether the body can begin again.
  var canRewind: Bool { state.withLock { $0.taken <= Self.mostKept } }

  /// Makes the body begin again. Called on the loop's thread.
  ///
  /// - Returns: whether the body can begin again.
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
  /// A server takes the body for complete at the last announced byte. So the chunk with this byte is sent
  /// only after the sequence has ended. If the sequence goes on instead, the request fails before the server
  /// can respond as if it had the whole body.
  ///
  /// - Parameter wake: called when libcurl waits for bytes and bytes or the end have arrived.
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
            .invalidRequest, phase: .send,
            "the body's stream has \(kind) bytes, but the request announced \(length)"))
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
