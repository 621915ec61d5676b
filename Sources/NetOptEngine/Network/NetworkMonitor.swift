import CNetwork
import Glibc
import NetOptCore

/// Listens to what the kernel says about links, addresses and routes (rtnetlink(7)), and tells when this machine is in
/// another network. It costs one descriptor and a look after half a second, and then nothing while nothing changes.
///
/// An actor on the event loop. While it listens the loop holds it: `stop` is to be called before the loop's end.
package actor NetworkMonitor: LoopActor, ReadinessHandler {
  package nonisolated let loop: EventLoop
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private var change: NetworkChange
  private let whenChanged: @Sendable (NetworkFingerprint) -> Void
  private var descriptor: Int32?
  private var timer: ChangeTimer?
  private var isStopped = false

  /// The most datagrams that are taken in one turn.
  private static let mostAtOnce = 64

  /// Makes a monitor that does not listen yet.
  ///
  /// - Parameters:
  ///   - network: the one that is taken for the present one.
  ///   - whenChanged: called on the loop's thread, with the new network.
  package init(
    _ loop: EventLoop, network: NetworkFingerprint,
    whenChanged: @escaping @Sendable (NetworkFingerprint) -> Void
  ) {
    self.loop = loop
    change = NetworkChange(network)
    self.whenChanged = whenChanged
  }

  /// Begins to listen. Where the system does not allow it (a sandbox without netlink) no change is ever told.
  package nonisolated func start() { _ = loop.submit(MonitorWork(self) { $0.listen() }) }

  /// Ends listening, and returns when no descriptor is left.
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
    // Between the caller's look and this moment nobody listened. The first request does not wait for another look.
    heard()
  }

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
        // There was more than the socket's buffer holds: what it was is lost.
        case ENOBUFS: heard()
        default: return close()
        }
        continue
      }
      // Any process may send to the socket; the kernel's port is 0.
      guard sender.nl_pid == 0 else { continue }
      if count > capacity || Self.mayMatter(buffer[..<count]) { heard() }
    }
  }

  /// What cannot be read is taken for a change: looking once too often costs little.
  private static func mayMatter(_ datagram: ArraySlice<UInt8>) -> Bool {
    guard let messages = try? RouteMessage.read(datagram) else { return true }
    return messages.contains { $0 != .irrelevant }
  }

  private func heard() {
    change.heard(at: loop.now())
    guard let due = change.due else { return }
    let timer = self.timer ?? ChangeTimer(self)
    self.timer = timer
    loop.schedule(timer, at: due)
  }

  fileprivate func look() {
    guard !isStopped else { return }
    if change.looked(NetworkFingerprint.current) { whenChanged(change.network) }
  }
}

/// Fires when a burst of messages is over.
private final class ChangeTimer: LoopTimer {
  private weak let monitor: NetworkMonitor?

  init(_ monitor: NetworkMonitor) { self.monitor = monitor }

  override func fire() { monitor?.onLoop(()) { monitor, _ in monitor.look() } }
}

/// Something that a monitor does on its loop.
private final class MonitorWork: LoopWork {
  private let monitor: NetworkMonitor
  private let body: @Sendable (isolated NetworkMonitor) -> Void

  init(_ monitor: NetworkMonitor, _ body: @escaping @Sendable (isolated NetworkMonitor) -> Void) {
    self.monitor = monitor
    self.body = body
  }

  func run() { monitor.onLoop(self) { monitor, work in work.body(monitor) } }
}
