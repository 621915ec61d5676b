import NetOptCore

/// One look-up: work for the loop on its way in, and the place where its outcome goes.
final class AresLookUp: LoopWork {
  typealias Outcome = Result<ResolvedAddresses, NetOptError>

  let name: String
  let channel: AresChannel
  private let whenEnded: @Sendable (Outcome) -> Void

  /// - Parameter whenEnded: called once, on the loop's thread, when the look-up was submitted to the channel's loop.
  init(_ name: String, on channel: AresChannel, whenEnded: @escaping @Sendable (Outcome) -> Void) {
    self.name = name
    self.channel = channel
    self.whenEnded = whenEnded
  }

  func run() { channel.assumeIsolated { $0.start(self) } }

  func end(_ outcome: Outcome) { whenEnded(outcome) }
}

/// A new beginning of a channel.
final class AresRenewal: LoopWork {
  private let channel: AresChannel

  init(_ channel: AresChannel) { self.channel = channel }

  func run() { channel.assumeIsolated { $0.renew() } }
}

/// The end of a channel.
final class AresShutdown: LoopWork {
  private let channel: AresChannel
  private let whenEnded: @Sendable () -> Void

  init(_ channel: AresChannel, whenEnded: @escaping @Sendable () -> Void) {
    self.channel = channel
    self.whenEnded = whenEnded
  }

  func run() {
    channel.assumeIsolated { $0.shutDown() }
    whenEnded()
  }
}
