import Glibc
import TestSupport
import Testing

/// contrib/subscriptions, and `subscribe --list`.
@Suite struct OfferedSubscriptionTests {
  private static let names = SourceTree.files(below: "contrib/subscriptions", suffix: "")
    .compactMap { $0.split(separator: "/").last.map(String.init) }

  private static let digest = String(repeating: "0", count: 64)
  private static let long = digest + digest

  /// A local copy of the shape of each list: names as its site has them, and what is not wanted beside it.
  private static let lists: [String: (list: String, file: String)] = [
    "debian-netinst": (
      "\(digest)  debian-13.1.0-amd64-netinst.iso\n\(digest)  debian-edu-13.1.0-amd64-netinst.iso\n"
        + "\(digest)  debian-mac-13.1.0-amd64-netinst.iso\n", "debian-13.1.0-amd64-netinst.iso"
    ),
    "debian-cloud": (
      "\(long)  debian-13-generic-amd64.qcow2\n\(long)  debian-13-genericcloud-amd64.qcow2\n",
      "debian-13-genericcloud-amd64.qcow2"
    ),
    "ubuntu-server": (
      "\(digest) *ubuntu-24.04.3-desktop-amd64.iso\n\(digest) *ubuntu-24.04.3-live-server-amd64.iso\n",
      "ubuntu-24.04.3-live-server-amd64.iso"
    ),
    "ubuntu-cloud": (
      "\(digest) *noble-server-cloudimg-amd64-azure.vhd.tar.gz\n\(digest) *noble-server-cloudimg-amd64.img\n",
      "noble-server-cloudimg-amd64.img"
    ),
    "fedora-cloud": (
      """
      -----BEGIN PGP SIGNED MESSAGE-----
      Hash: SHA256

      # Fedora-Cloud-Base-AmazonEC2-42-1.1.x86_64.raw.xz: 1 bytes
      SHA256 (Fedora-Cloud-Base-AmazonEC2-42-1.1.x86_64.raw.xz) = \(digest)
      # Fedora-Cloud-Base-Generic-42-1.1.x86_64.qcow2: 1 bytes
      SHA256 (Fedora-Cloud-Base-Generic-42-1.1.x86_64.qcow2) = \(digest)
      -----BEGIN PGP SIGNATURE-----

      iQIzBAEBCAAdFiEE
      -----END PGP SIGNATURE-----

      """, "Fedora-Cloud-Base-Generic-42-1.1.x86_64.qcow2"
    ),
    "arch-iso": (
      "\(digest)  archlinux-2026.11.01-x86_64.iso\n\(digest)  archlinux-x86_64.iso\n"
        + "\(digest)  archlinux-bootstrap-2026.11.01-x86_64.tar.zst\n", "archlinux-2026.11.01-x86_64.iso"
    ),
    "freebsd": (
      "SHA256 (FreeBSD-14.3-RELEASE-amd64-bootonly.iso) = \(digest)\n"
        + "SHA256 (FreeBSD-14.3-RELEASE-amd64-bootonly.iso.xz) = \(digest)\n",
      "FreeBSD-14.3-RELEASE-amd64-bootonly.iso.xz"
    ),
    "node": (
      "\(digest)  node-v25.1.0-linux-arm64.tar.xz\n\(digest)  node-v25.1.0-linux-x64.tar.gz\n"
        + "\(digest)  node-v25.1.0-linux-x64.tar.xz\n\(digest)  win-x64/node.exe\n", "node-v25.1.0-linux-x64.tar.xz"
    ),
  ]

  @Test func `they are listed, each with a title`() async throws {
    let lines = try await spoolrun("subscribe", "--list", directory: "/").output.split(separator: "\n")
    #expect(Self.names.count >= 20 && lines.count == Self.names.count, "\(lines)")
    for name in Self.names {
      #expect(lines.contains { $0.hasPrefix("\(name) ") && $0.count > 30 }, "\(name)")
    }
  }

  @Test(arguments: names)
  func `each is taken by its name, and drops one job of its list's shape`(name: String) async throws {
    let list = Self.lists[name]?.list ?? "content\n"
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", ["ETag: \"1\""], body: Array(list.utf8)) }
    let spool = try TemporarySpool()
    let taken = try await spoolrun("subscribe", "--spool", spool.root, name)
    #expect(taken.status == .exited(0) && taken.output == "\(name)\n", "\(taken)")
    let text = try spool.text("standing/\(name)")
    #expect(text.contains("url: https://") && text.contains("output: "), "\(text)")
    let local = text.replacing(/https:\/\/[^\/]+/) { _ in String(server.url("").dropLast(0)) }
    try spool.write("standing/\(name)", local)
    try spool.makeOrderDue(name)
    let result = try await spool.once()
    let jobs = ["done", "partial"].flatMap { spool.names($0) }.filter { !$0.hasSuffix(".part") }
    #expect(jobs.count == 1 && jobs.allSatisfy { $0.hasPrefix("\(name)-") }, "\(result)")
    let target = server.requests.last?.target ?? ""
    if let file = Self.lists[name]?.file { #expect(target.hasSuffix("/\(file)"), "\(target)") }
    #expect(!target.contains("*"))
  }

  /// By the one reader of jobs.
  @Test func `a mistake in a file is told`() async throws {
    let home = try TemporaryDirectory()
    try await runTool(
      ["/bin/sh", "-euc", "mkdir -p bin share/spoolrun/subscriptions; cp \"$0\" bin", try productPath("spoolrun")],
      directory: home.path)
    let spool = try TemporarySpool()
    for (line, reason) in [("every", "neither a URL nor"), (":", "unknown key"), ("evry: 1d", "unknown key `evry`")] {
      try writeFile("\(home.path)/share/spoolrun/subscriptions/odd", "# A title\nurl: https://h/\n\(line)\n")
      try await run(["\(home.path)/bin/spoolrun", "subscribe", "--spool", spool.root, "odd"])
        .exits(64, saying: "odd: \(reason)")
    }
    #expect(try await run(["\(home.path)/bin/spoolrun", "subscribe", "--list"]).output.hasSuffix(" A title\n"))
  }

  @Test func `options replace what the file says`() async throws {
    let spool = try TemporarySpool()
    let taken = try await spoolrun(
      "subscribe", "--spool", spool.root, "--every", "9d", "-o", "else/", "--name", "tz", "tzdata")
    #expect(taken.output == "tz\n", "\(taken)")
    let text = try spool.text("standing/tz")
    #expect(text.contains("every: 9d\n") && text.contains("output: else/\n") && text.contains("entries: file\n"))
    try await spoolrun("subscribe", "--spool", spool.root, "nosuch").exits(64)
  }
}
