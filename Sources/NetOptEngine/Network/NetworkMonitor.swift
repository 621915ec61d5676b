import CNetwork
import Glibc
import NetOptCore

/// Listens to the kernel's messages about links, addresses and routes (rtnetlink(7)), and reports when this
/// machine moves to another network. The monitor uses one descriptor. It reads the network fingerprint once,
/// half a second after the start. After that it costs nothing until something changes.
///
/// The monitor is an actor on the event loop. The loop holds a reference to the monitor while the monitor
/// listens, so `stop` must be called before the loop ends.
package actor NetworkMonitor: LoopActor, ReadinessHandler {
  package nonisolated let loop: EventLoop
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Decides when to read the fingerprint, and holds the fingerprint of the current network.
  private var change: NetworkChange
  /// The owner's closure, called on the loop's thread with the fingerprint of a new network.
  private let whenChanged: @Sendable (NetworkFingerprint) -> Void
  /// The netlink socket; `nil` while the monitor does not listen.
  private var descriptor: Int32?
  /// The timer that reads the fingerprint when a reading is due; `nil` before the monitor listens, and after
  /// it was stopped.
  private var timer: ChangeTimer?
  /// Whether the monitor was stopped, or its socket failed. It cannot start again.
  private var isStopped = false

  /// The most datagrams that the monitor reads in one turn of the event loop.
  private static let mostAtOnce = 64

  /// Makes a monitor that does not listen yet.
  ///
  /// - Parameters:
  ///   - network: the fingerprint that the caller has read and takes for the current network.
  ///   - whenChanged: called on the loop's thread with the fingerprint of the new network.
  package init(
    _ loop: EventLoop, network: NetworkFingerprint,
    whenChanged: @escaping @Sendable (NetworkFingerprint) -> Void
  ) {
    self.loop = loop
    change = NetworkChange(network)
    self.whenChanged = whenChanged
  }

  /// Starts listening. When the system does not permit it (a sandbox without netlink), the monitor never
  /// reports a change.
  package nonisolated func start() { _ = loop.submit(MonitorWork(self) { $0.listen() }) }

  /// Stops listening. Returns after the descriptor is closed.
  package nonisolated func stop() async {
    // Checked: the loop may resume it before this task is suspended (docs/adr/0006).
    await withCheckedContinuation { done in
      let work = MonitorWork(self) {
        $0.close()
        done.resume()
      }
      if !loop.submit(work) { done.resume() }
    }
  }

  /// Opens the netlink socket and watches it. Does nothing when the system refuses the socket.
  private func listen() {
    guard !isStopped, descriptor == nil else { return }
    let kind = netopt_socket_raw | netopt_socket_close_on_exec | netopt_socket_nonblocking
    let opened = socket(AF_NETLINK, kind, NETLINK_ROUTE)
    guard opened >= 0 else { return }
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = UInt32(
      RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE)
    let isBound = withUnsafeBytes(of: &address) { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { bind(opened, $0.baseAddress, socklen_t(bytes.count)) == 0 }
    }
    guard isBound else {
      Glibc.close(opened)
      return
    }
    descriptor = opened
    loop.watch(opened, for: .read, self)
    // The caller read its fingerprint before the socket was open, and a change between the two moments caused
    // no message here. So the monitor reads the fingerprint once more, later, so that the first request does
    // not wait for it.
    scheduleReading()
  }

  /// Closes the socket and stops the timer. The monitor then reports nothing more.
  private func close() {
    isStopped = true
    if let timer { loop.cancel(timer) }
    timer = nil
    guard let descriptor = descriptor.take() else { return }
    loop.unwatch(descriptor, of: self)
    Glibc.close(descriptor)
  }

  package nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    onLoop(()) { monitor, _ in monitor.receive() }
  }

  /// Reads the datagrams that have arrived. Stops the monitor when its socket fails.
  private func receive() {
    guard let descriptor else { return }
    var buffer = [UInt8](repeating: 0, count: 32 * 1024)
    for _ in 0..<Self.mostAtOnce {
      var sender = sockaddr_nl()
      var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
      let capacity = buffer.count
      let count = withUnsafeMutableBytes(of: &sender) { sender in
        sender.withMemoryRebound(to: sockaddr.self) {
          recvfrom(descriptor, &buffer, capacity, netopt_message_whole_length, $0.baseAddress, &length)
        }
      }
      if count < 0 {
        switch errno {
        case EINTR: continue
        case EAGAIN: return
        // The socket's buffer overflowed, and messages were lost.
        case ENOBUFS: scheduleReading()
        default: return close()
        }
        continue
      }
      // Any process may send to the socket. Messages of the kernel have port 0.
      guard sender.nl_pid == 0 else { continue }
      if count > capacity || Self.mayMatter(buffer[..<count]) { scheduleReading() }
    }
  }

  /// Whether a datagram may report a change of the network. A malformed datagram counts as a change: an
  /// unnecessary reading costs little.
  private static func mayMatter(_ datagram: ArraySlice<UInt8>) -> Bool {
    guard let messages = try? RouteMessage.read(datagram) else { return true }
    return messages.contains { $0 != .irrelevant }
  }

  /// Notes that a message has arrived, and sets the timer to the moment when the fingerprint must be read.
  private func scheduleReading() {
    change.noteMessage(at: loop.now())
    guard let due = change.due else { return }
    let timer = self.timer ?? ChangeTimer(self)
    self.timer = timer
    loop.schedule(timer, at: due)
  }

  /// Reads the fingerprint, and reports it when the machine has moved to another network.
  fileprivate func readFingerprint() {
    guard !isStopped else { return }
    if change.update(NetworkFingerprint.current) { whenChanged(change.network) }
  }
}

/// Reads the fingerprint at the end of a burst of messages.
private final class ChangeTimer: LoopTimer {
  private weak let monitor: NetworkMonitor?

  init(_ monitor: NetworkMonitor) { self.monitor = monitor }

  override func fire() { monitor?.onLoop(()) { monitor, _ in monitor.readFingerprint() } }
}

/// Work that a monitor runs on its loop.
private final class MonitorWork: LoopWork {
  private let monitor: NetworkMonitor
  private let body: @Sendable (isolated NetworkMonitor) -> Void

  init(_ monitor: NetworkMonitor, _ body: @escaping @Sendable (isolated NetworkMonitor) -> Void) {
    self.monitor = monitor
    self.body = body
  }

  func run() { monitor.onLoop(self) { monitor, work in work.body(monitor) } }
}
