import Dispatch
import Glibc
import NetOptTestSupport
import TestTools
import Testing

@Suite struct NetworkNamespaceTests {
  /// libdispatch starts threads from the thread that gives it work, and a new thread begins in the network of
  /// the thread that starts it.
  @Test(
    "no thread of libdispatch stays in a namespace that has ended",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func endedNamespaces() throws {
    for _ in 0..<5 {
      let namespace = try NetworkNamespace()
      try namespace.run {
        let group = DispatchGroup()
        // More blocks at once than there are threads.
        for _ in 0..<64 { DispatchQueue.global().async(group: group) { usleep(1000) } }
        group.wait()
      }
      #expect(namespace.hasThreads)
      namespace.end()
      #expect(!namespace.hasThreads)
    }
  }

  @Test(
    "the thread that ends a namespace is out of it afterwards",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func callerInTheNamespace() throws {
    let namespace = try NetworkNamespace()
    let caller = try namespace.run { try JoinableThread { namespace.end() } }
    caller.join()
    #expect(!namespace.hasThreads)
  }
}
