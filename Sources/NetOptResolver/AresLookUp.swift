import NetOptCore
import NetOptEventLoop

/// One look-up: work for the loop on its way in, and the place where its outcome goes.
final class AresLookUp: LoopWork {
  typealias Outcome = Result<ResolvedAddresses, NetOptError>

  let name: String
  let channel: AresChannel
  private let whenEnded: @Sendable (Outcome, DNSCache.Network) -> Void

  /// - Parameter whenEnded: called once, on the loop's thread, when the look-up was submitted to the channel's loop; told in
  ///   which network the servers were asked.
  init(
    _ name: String, on channel: AresChannel,
    whenEnded: @escaping @Sendable (Outcome, DNSCache.Network) -> Void
  ) {
    self.name = name
    self.channel = channel
    self.whenEnded = whenEnded
  }

  func run() { channel.assumeIsolated { $0.start(self) } }

  func end(_ outcome: Outcome, in network: DNSCache.Network) { whenEnded(outcome, network) }
}

/// A new beginning of a channel, in another network.
final class AresRenewal: LoopWork {
  private let channel: AresChannel

  init(_ channel: AresChannel) { self.channel = channel }

  func run() { channel.assumeIsolated { $0.networkChanged() } }
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
