import NetOptCore

/// One look-up of a name. When the loop runs this object, the look-up starts on the channel. At the end of
/// the look-up, the channel calls `end` with the outcome.
final class AresLookUp: LoopWork {
  typealias Outcome = Result<ResolvedAddresses, NetOptError>

  let name: String
  let channel: AresChannel
  /// The resolver's closure. Called once, on the loop's thread.
  private let whenEnded: @Sendable (Outcome) -> Void

  /// - Parameter whenEnded: called once, on the loop's thread, if the channel's loop has accepted this
  ///   object.
  init(_ name: String, on channel: AresChannel, whenEnded: @escaping @Sendable (Outcome) -> Void) {
    self.name = name
    self.channel = channel
    self.whenEnded = whenEnded
  }

  func run() { channel.assumeIsolated { $0.start(self) } }

  /// Passes the outcome to the resolver.
  func end(_ outcome: Outcome) { whenEnded(outcome) }
}

/// Closes and reopens a channel on its loop (`AresChannel.renew`).
final class AresRenewal: LoopWork {
  private let channel: AresChannel

  init(_ channel: AresChannel) { self.channel = channel }

  func run() { channel.assumeIsolated { $0.renew() } }
}

/// Shuts a channel down on its loop.
final class AresShutdown: LoopWork {
  private let channel: AresChannel
  /// Called on the loop's thread when the channel is closed.
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
