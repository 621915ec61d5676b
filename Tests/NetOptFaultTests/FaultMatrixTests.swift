import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Runs a sample of the matrix in child processes. Two processes share the cells where they may have their
/// own network namespaces; otherwise one process runs all cells.
@Suite struct FaultMatrixTests {
  @Test(
    "a sample of 40 cells of the fault matrix has no violations")
  func cells() async throws {
    let directory = try TemporaryDirectory.make("faults")
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = FileBytes.folder(of: tests) + "/netopt-faults"
    let shared = NetworkNamespace.isAvailable ? ["--jobs", "2"] : []
    let matrix = try ChildProcess(program, ["--sample", "40", "--short"] + shared, in: directory)
    try await wait(for: "the cells to be run", within: .seconds(600)) { matrix.exitStatus() != nil }
    let output = TextFile.read(matrix.output)
    #expect(matrix.exitStatus() == 0, "\(output)")
    // Guards against a run that tests nothing.
    #expect(output.contains("\n40 cells, 0 with violations"), "\(output)")
  }
}
