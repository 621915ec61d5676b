import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptStorm

/// The resources that a storm leaves behind.
@Suite struct LeftoversTests {
  @Test("a descriptor that stays open is found and described by its path")
  func openDescriptors() throws {
    let before = Leftovers.now
    #expect(Leftovers.now.additions(to: before).isEmpty)
    let path = "\(try TemporaryDirectory.make("left"))/left"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    let additions = Leftovers.now.additions(to: before)
    #expect(additions.count == 1)
    #expect(additions.first?.contains(path) == true)
  }

  @Test("threads and allocations that remain are found")
  func threadsAndAllocations() {
    let before = Leftovers(descriptors: ["a"], threads: ["netopt-loop"], curl: 7)
    let after = Leftovers(descriptors: ["a"], threads: ["netopt-loop", "netopt-disk"], curl: 8)
    #expect(after.additions(to: before).count == 2)
    #expect(before.additions(to: after).isEmpty)
  }
}
