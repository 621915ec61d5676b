import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct FileReplacementTests {
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("files") }

  private func mode(of path: String) -> mode_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  private func replace(_ path: String, with text: String) throws {
    let file = try FileReplacement(path)
    try file.write(Array(text.utf8))
    try file.commit()
  }

  @Test func makesANewFile() throws {
    try replace(directory + "/new", with: "text")
    #expect(try Files.read(directory + "/new") == "text")
    #expect(mode(of: directory + "/new") & 0o111 == 0)
    #expect(try Files.names(in: directory) == ["new"])
  }

  @Test func replacesAFileAndKeepsItsMode() throws {
    let path = directory + "/old"
    try Files.write("a longer text than the new one", to: path)
    chmod(path, 0o640)
    try replace(path, with: "new")
    #expect(try Files.read(path) == "new")
    #expect(mode(of: path) == 0o640)
    #expect(try Files.names(in: directory) == ["old"])
  }

  @Test func leavesTheOldFileUntilItIsComplete() throws {
    let path = directory + "/old"
    try Files.write("old", to: path)
    do {
      let file = try FileReplacement(path)
      try file.write(Array("half".utf8))
      #expect(try Files.read(path) == "old")
      #expect(try Files.names(in: directory).count == 2)
    }
    #expect(try Files.read(path) == "old")
    #expect(try Files.names(in: directory) == ["old"])
  }

  @Test func leavesALinkALink() throws {
    try Files.write("old", to: directory + "/file")
    symlink("file", directory + "/link")
    try replace(directory + "/link", with: "new")
    #expect(try Files.read(directory + "/file") == "new")
    var status = stat()
    #expect(lstat(directory + "/link", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test func aDeviceIsWrittenToAndStays() throws {
    try replace("/dev/null", with: "text")
    var status = stat()
    #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
  }

  @Test func aFullDeviceIsAnError() throws {
    #expect(throws: OutputError(kind: .refused(ENOSPC), target: "/dev/full")) {
      try replace("/dev/full", with: "text")
    }
  }

  @Test func aFolderIsNoFile() {
    #expect(throws: OutputError(kind: .refused(EISDIR), target: directory)) {
      try replace(directory, with: "text")
    }
  }

  @Test(arguments: ["/no/such/folder", "/"]) func aFileNeedsAFolder(tail: String) {
    #expect(throws: OutputError(kind: .refused(ENOENT), target: directory + "/x" + tail)) {
      try replace(directory + "/x" + tail, with: "text")
    }
  }

  @Test func aFileNeedsAName() {
    #expect(throws: OutputError(kind: .refused(ENOENT), target: "a file without a name")) {
      try replace("", with: "text")
    }
  }
}
