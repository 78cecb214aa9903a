import Glibc
import TestSupport
import Testing

/// Runs each recipe of spoolrun-howto(7) in a spool of its own, against a server of ours.
@Suite struct HowtoTests {
  @Test func `each recipe has a test`() throws {
    let source = try SourceTree.lines("Tests/Documents/HowtoTests.swift")
    for title in try Recipe.titles() {
      #expect(source.contains { $0.contains("(\"\(title)\"") }, "\(title)")
    }
  }

  @Test func night() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    let command = try #require(try Recipe("ONLY AT NIGHT").cron.first)
    #expect(try await run("ONLY AT NIGHT", on: site).status == .exited(0), "there is nothing but the line of cron")
    let worker = try RunningCommand(
      ["/bin/sh", "-c", "exec " + site.localized(command)], environment: site.environment,
      directory: site.directory.path)
    try await waitUntil("the job is done") { site.files("done") == ["data"] }
    // What timeout(1) does at the end of the seven hours, and passes on.
    worker.send(signal: SIGTERM)
    let result = try await worker.result()
    #expect(result.output + result.errors == "", "\(result)")
  }

  @Test func byDay() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    try await succeed("SLOWER BY DAY", on: site)
    #expect(site.files("done") == ["data", "archive.tar"])
  }

  @Test func checksums() async throws {
    let site = try await site()
    try writeFile("\(site.directory.path)/SHA256SUMS", Array("\(Site.digest)  a\n\(Site.digest)  sub/b\n".utf8))
    try await succeed("A LIST WITH CHECKSUMS", on: site)
    #expect(site.files("done").count == 2)
    #expect(try readFile("\(site.spool)/files/pub/sub/b") == Site.payload)
  }

  @Test(.enabled("needs programs that sign") { try await Need.signing.isMet() })
  func signedList() async throws {
    let site = try await site()
    let home = "\(site.directory.path)/gnupg"
    let list = "\(site.directory.path)/SHA256SUMS"
    try writeFile(list, Array("\(Site.digest)  a\n".utf8))
    let gpg = "gpg --homedir \(home) -q --batch"
    let script = """
      mkdir -m 700 \(home)
      \(gpg) --passphrase '' --quick-gen-key author@mirror.example ed25519 sign never
      \(gpg) -o \(list).sign --armor --detach-sign \(list); gpgconf --homedir \(home) --kill gpg-agent
      """
    try #require(try await site.run(["/bin/sh", "-euc", script]).status == .exited(0))
    try await succeed("A SIGNED LIST", on: site) {
      $0.replacing("gpg --export", with: "gpg --homedir \(home) --export")
    }
    #expect(site.files("done") == ["a"])
  }

  @Test func mirrors() async throws {
    let site = try await site()
    try await succeed("SEVERAL MIRRORS", on: site)
    #expect(try readFile("\(site.spool)/files/data.tar") == Site.payload)
  }

  @Test func subscription() async throws {
    let site = try await site()
    try await succeed("NEW FILES OF A MIRROR OR PODCAST", on: site)
    #expect(try readFile("\(site.spool)/files/pub/new.tar") == Site.payload)
  }

  @Test func podcasts() async throws {
    let site = try await site()
    try await succeed("PODCASTS", on: site)
    #expect(names(in: "\(site.spool)/files/podcasts").sorted() == ["1.mp3", "2.mp3", "3.mp3"])
  }

  @Test(.enabled("needs curl") { try await Need.program("curl").isMet() })
  func mail() async throws {
    let (site, mail) = (try await site(), try await MailServer())
    try await add("data", "/gone.iso", site)
    let result = try await run("MAIL WHAT FAILED", on: site) {
      $0.replacing("MAILTO=", with: "SMTP_URL=smtp://127.0.0.1:\(mail.port) MAILTO=")
    }
    #expect(result.status == .exited(1), "\(result)")
    let said = try mail.said
    #expect(said.contains("RCPT TO:<me@mirror.example>"), "\(said)")
  }

  @Test func slurm() async throws {
    let site = try await site()
    try writeFile("\(site.directory.path)/SHA256SUMS", Array("\(Site.digest)  a\n\(Site.digest)  b\n".utf8))
    try await succeed("WITH SLURM", on: site)
    #expect(site.files("done") == ["a", "b"])
  }

  @Test func snakemake() async throws {
    let site = try await site()
    let rule = try Recipe("IN A SNAKEMAKE RULE").text
    let shell = try #require(rule.firstMatch(of: /shell: "(.*)"/)?.1).replacing("{output}", with: "data.tar")
    let result = try await site.run(["/bin/sh", "-euc", site.localized(String(shell))])
    #expect(result.status == .exited(0) && result.output + result.errors == "", "\(result)")
    #expect(try readFile("\(site.directory.path)/data.tar") == Site.payload)
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func group() async throws {
    let site = try await site()
    try await succeed("A SPOOL FOR A GROUP", on: site) {
      $0.replacing("spoolrun:spoolrun", with: "61001:61001").replacing("chgrp users", with: "chgrp 61009")
    }
    chmod(site.directory.path, 0o755)
    func member(_ user: Int, _ script: String) async throws -> CommandResult {
      let identity = ["--reuid=\(user)", "--regid=\(user)", "--groups=61009"]
      return try await site.run(["/usr/bin/setpriv"] + identity + ["/bin/sh", "-c", script], in: site.spool)
    }
    let dropped = try await member(
      61002, "umask 027; echo \(site.server.url("/data.tar")) >new/.a && mv new/.a new/a")
    #expect(dropped.status == .exited(0), "\(dropped)")
    #expect(site.files("new") == ["a"])
    #expect(try await member(61003, "ls new || cat new/a || rm -f new/a").status != .exited(0))
  }

  @Test(.enabled("needs root, a mount namespace, /dev/fuse and bindfs") { try await Need.bindfs.isMet() })
  func attachedStorage() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    let (export, mount) = ("\(site.directory.path)/export", "\(site.directory.path)/nas")
    for path in [export, mount] { mkdir(path, 0o755) }
    let script = try Recipe("TO A NAS").script
      .replacing("mount -t nfs nas.example:/export", with: "bindfs \(export)").replacing("/mnt/nas", with: mount)
      .replacing("nfs,nfs4,cifs", with: "fuse,fuse.bindfs")
    let unmounted = script.split(separator: "\n").last.map(String.init) ?? ""
    // As systemd does for ReadWritePaths=.
    for preparation in ["", "mount --bind \(mount) \(mount)\n"] {
      let result = try await site.run(["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", preparation + unmounted])
      #expect(result.status == .exited(75), "it waits for the NAS: \(result)")
    }
    let result = try await site.run(["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script + "umount \(mount)"])
    #expect(result.status == .exited(0), "\(result)")
    #expect(try readFile("\(export)/data.tar") == Site.payload)
  }

  @Test(.enabled("needs rclone") { try await Need.program("rclone").isMet() })
  func objectStorage() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    let store = "\(site.directory.path)/store"
    try await succeed("TO OBJECT STORAGE", on: site) {
      $0.replacing("s3 provider=Minio endpoint=https://s3.example", with: "alias remote=\(store)")
    }
    #expect(try readFile("\(store)/bucket/downloads/data.tar") == Site.payload)
  }

  @Test func proxy() async throws {
    let site = try await site()
    // Only the proxy can be asked for it.
    let host = "http://files.invalid"
    try await add("data", "/data.tar", site, from: host)
    let address = site.server.url("").replacing("http://", with: "")
    func local(_ text: String) -> String {
      text.replacing("proxy.example:3128", with: address).replacing("https_proxy", with: "http_proxy")
    }
    let commands = try Recipe("BEHIND A PROXY").script.split(separator: "\n").map { site.localized(local(String($0))) }
    #expect(try await site.run(["/bin/sh", "-euc", commands[0]]).status == .exited(0))
    try await add("second", "/second.tar", site, from: host)
    try await succeed("BEHIND A PROXY", on: site, local)
    #expect(site.files("done") == ["data", "second"])
    for name in ["data.tar", "second.tar"] {
      #expect(site.server.requests(for: "\(host)/\(name)").count == 1, "through the proxy")
    }
  }

  @Test func stuck() async throws {
    let site = try await site()
    for name in ["data", "other"] { try await add(name, "/gone.iso?\(name)", site) }
    _ = try await site.run(["/usr/bin/env", "spoolrun", "--once"])
    #expect(site.files("failed") == ["data", "other"])
    let result = try await succeed("WHY DOES IT NOT GO ON", on: site)
    #expect(result.output.contains("http-404"))
    #expect(site.files("new") == ["data", "other"])
  }

  @Test func expired() async throws {
    let site = try await site()
    try await add("data", "/gone.iso", site)
    _ = try await site.run(["/usr/bin/env", "spoolrun", "--once"])
    try await succeed("A LINK HAS EXPIRED", on: site)
    #expect(site.files("done") == ["data"])
  }

  @Test func fullDisk() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    try await succeed("THE DISK IS FULL", on: site) { $0.replacing("10G", with: "1M") }
    #expect(site.files("done") == ["data"])
  }

  @Test func archive() async throws {
    let site = try await site()
    try await add("data", "/data.tar", site)
    #expect(try await site.run(["/usr/bin/env", "spoolrun", "--once"]).status == .exited(0))
    let receipt = try readFile("\(site.spool)/done/data")
    try setModificationTime("\(site.spool)/done/data", secondsFromNow: -31 * 86_400)
    let command = site.localized(try #require(try Recipe("MANY DONE JOBS").cron.first))
    #expect(try await site.run(["/bin/sh", "-euc", command]).status == .exited(0))
    #expect(site.files("done") == ["archive"])
    let result = try await succeed("MANY DONE JOBS", on: site)
    #expect(result.output.contains("/data\n") && result.output.contains("data: done\n"), "\(result)")
    #expect(try readFile("\(site.spool)/new/data") == receipt)
  }

  @Test(.enabled("needs rsync") { try await Need.program("rsync").isMet() })
  func move() async throws {
    let site = try await site()
    try await add("data", "/cut.tar", site)
    #expect(try await site.run(["/usr/bin/env", "spoolrun", "--once"]).status == .exited(75))
    let half = Site.payload.count / 2
    #expect(try readFile("\(site.spool)/partial/data.part").count == half)
    site.isServerMended.open()
    let moved = "\(site.directory.path)/moved"
    // Its next attempt is due a minute later.
    try await succeed("MOVE TO ANOTHER MACHINE", on: site) {
      $0.replacing("backup.example:/srv/spool/", with: "\(moved)/")
        .replacing("ssh backup.example", with: "touch \(moved)/partial/data;").replacing(
          "/srv/spool\n", with: "\(moved)\n")
    }
    #expect(try readFile("\(moved)/files/cut.tar") == Site.payload)
    #expect(site.server.requests(for: "/cut.tar").last?.rangeStart == resumePoint(after: half))
  }

  @Test func upgrade() async throws {
    let site = try await site()
    try writeFile("\(site.directory.path)/bin/systemctl", Array("#!/bin/sh\necho \"$@\"\n".utf8))
    chmod("\(site.directory.path)/bin/systemctl", 0o700)
    #expect(try await succeed("UPGRADE", on: site).output == "restart spoolrun\n")
    #expect(try SourceTree.lines("contrib/systemd/spoolrun.service").contains("[Service]"))
  }

  // MARK: running

  /// A site with an empty spool.
  private func site() async throws -> Site {
    let site = try Site(usesSpoolVariable: true)
    let introduction = try Recipe("DESCRIPTION").script
    let result = try await site.run(["/bin/sh", "-euc", introduction])
    #expect(result.status == .exited(0), "\(result)")
    return site
  }

  private func add(_ name: String, _ path: String, _ site: Site, from host: String? = nil) async throws {
    let url = host.map { $0 + path } ?? site.server.url(path)
    let result = try await site.run(["/usr/bin/env", "spoolrun", "add", "--name", name, url])
    #expect(result.status == .exited(0), "\(result)")
  }

  private func run(_ title: String, on site: Site, _ local: (String) -> String = { $0 }) async throws -> CommandResult {
    let script = local(try Recipe(title).script).replacing("718f7954...5794c", with: Site.digest)
    return try await site.run(["/bin/sh", "-euc", site.localized(script)])
  }

  @discardableResult
  private func succeed(_ title: String, on site: Site, _ local: (String) -> String = { $0 }) async throws
    -> CommandResult
  {
    let result = try await run(title, on: site, local)
    #expect(result.status == .exited(0), "\(title): \(result)")
    return result
  }
}
