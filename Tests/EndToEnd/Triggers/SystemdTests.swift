import TestSupport
import Testing

@Suite struct SystemdTests {
  @Test(.enabled("needs systemd-analyze") { try await Need.program("systemd-analyze").isMet() })
  func `systemd finds nothing wrong with the units, and little exposed`() async throws {
    let scene = try Scene.echoing()
    var units: [String] = []
    let folders = ["systemd", "prometheus"].map { SourceTree.contrib($0) }
    for (folder, name) in folders.flatMap({ folder in names(in: folder).map { (folder, $0) } }) {
      guard [".service", ".timer", ".path"].contains(where: { name.hasSuffix($0) }) else { continue }
      let text = String(decoding: try readFile("\(folder)/\(name)"), as: UTF8.self)
      // The program is where the tests have built it, and the manual pages are not installed.
      try writeFile(
        "\(scene.tools)/\(name)", Array(text.replacing("/usr/local/bin/", with: "\(scene.tools)/").utf8))
      units.append("\(scene.tools)/\(name)")
    }
    #expect(units.count == 7)
    let verified = try await run(["/usr/bin/env", "systemd-analyze", "verify", "--man=no"] + units)
    #expect(verified.status == .exited(0) && verified.errors == "", "\(verified)")
    for unit in units where unit.hasSuffix(".service") {
      // The levels go from 0 to 10; below 2 systemd calls it OK.
      let rated = try await run([
        "/usr/bin/env", "systemd-analyze", "security", "--offline=yes", "--threshold=20", unit,
      ])
      #expect(rated.status == .exited(0), "\(rated)")
    }
  }
}
