internal import Glibc
internal import SystemPackage

/// The type of a file system (statfs(2), f_type), and which answers of the kernel can be believed there.
package struct FileSystemKind: Sendable, Equatable {
  package enum Sharing: Sendable {
    /// Only processes under this kernel.
    case local
    /// Other hosts too.
    case network
    /// Also the program that serves it (fuse(4)), on behalf of another host or of another directory.
    case program
    case unknown
  }

  /// Which answers of F_SETLEASE with F_RDLCK (fcntl(2)) are true, wherever the file may be written.
  package enum LeaseAnswers: Sendable {
    /// Both: it is granted if and only if nobody has the file open for writing.
    case both
    /// Only that it is granted. It may be refused although nobody writes.
    case granted
    /// Only that it is refused, because a process under this kernel writes. It is granted while another host writes.
    case refused
  }

  /// As mount(8) calls it.
  package let name: String
  package let sharing: Sharing
  package let leases: LeaseAnswers
  /// Whether each host sets the times of files by its own clock, so that they say nothing of another host's.
  package var timesAreOfHosts = false
  /// MooseFS makes readers wait for what another host writes (INTERNALS.md, "File systems").
  package var isMooseFS = false
  /// It is local, and lacks RENAME_NOREPLACE, at least in older versions: ZFS before 2.2, and ecryptfs.
  private(set) var lacksNoReplace = false

  /// - Parameter leases: nil if it follows from `sharing`.
  package init(name: String, sharing: Sharing, leases: LeaseAnswers? = nil) {
    (self.name, self.sharing) = (name, sharing)
    self.leases = leases ?? (sharing == .local ? .both : .refused)
  }

  /// Whether a lease that is granted proves that nobody has the file open for writing.
  package var leaseShowsAllWriters: Bool { leases != .refused }

  /// Whether all changes go through this kernel. Then inotify(7) reports them all, the number of a file's names is
  /// right, and this host's clock sets the times of files.
  package var isLocal: Bool { sharing == .local }

  /// Whether a name may be moved by link and unlink, so that others may see half a move. Which of the network file
  /// systems know another way, no type says.
  var hasHalfMoves: Bool { !isLocal || lacksNoReplace }

  /// Whether syncfs(2) makes all of it durable, and reports each failed write. FUSE passes it to almost no program
  /// (fuse_sync_fs in fs/fuse/inode.c), so what the program, such as that of MooseFS, still has in its memory stays
  /// there. ecryptfs has no such call, and leaves its pages in the cache of the file system below; overlay is not told
  /// of the writes that fail there.
  package var syncsAsAWhole: Bool { isLocal && !["ecryptfs", "overlay"].contains(name) }

  /// - Parameter type: f_type of statfs(2).
  package init(type: UInt32) {
    self = Self.known[type] ?? FileSystemKind(name: "type 0x\(String(type, radix: 16))", sharing: .unknown)
  }

  /// - Parameter mounted: its type as proc_pid_mountinfo(5) has it, which tells those apart that programs serve.
  func mounted(as mounted: String) -> FileSystemKind {
    var kind = self
    if mounted == "fuse.glusterfs" {
      kind = FileSystemKind(name: "glusterfs", sharing: .network, leases: leases)
      // features.ctime, which is on by default: the client says when, and the bricks keep it in an attribute.
      kind.timesAreOfHosts = true
    }
    kind.isMooseFS = mounted == Self.mooseFS
    return kind
  }

  /// What the type of a MooseFS is called here. It is mounted as `fuse`, with a source that begins with `mfs`.
  static let mooseFS = "fuse.mfs"

  /// Whether a server gives a host a delegation of what it reads, and has to take it back before another host may
  /// change or rename the file. The other host waits for 0.1 s and asks again.
  package var hasDelegations: Bool { name == "nfs" }

  /// Whether a power cut that leaves a name leaves the earlier names of other files as well. btrfs logs each file that
  /// is flushed by itself.
  package var ordersNames: Bool { name != "btrfs" }

  static let fuse = FileSystemKind(name: "fuse", sharing: .program)

  /// linux/magic.h, and the file systems' own sources.
  private static let known: [UInt32: FileSystemKind] = [
    0xEF53: local("ext4"), 0x5846_5342: local("xfs"), 0x9123_683E: local("btrfs"), 0x0102_1994: local("tmpfs"),
    0x8584_58F6: local("ramfs"), 0x794C_7630: local("overlay"), 0xF2F5_2010: local("f2fs"),
    0x2FC1_2FC1: local("zfs", lacksNoReplace: true), 0xCA45_1A4E: local("bcachefs"), 0x3153_464A: local("jfs"),
    0x5265_4973: local("reiserfs"), 0x3434: local("nilfs2"), 0x2405_1905: local("ubifs"), 0x4D44: local("vfat"),
    0x2011_BAB0: local("exfat"), 0x7366_746E: local("ntfs3"), 0x482B: local("hfsplus"),
    0xF15F: local("ecryptfs", lacksNoReplace: true),
    // The server gives a delegation only if no client has the file open for writing (RFC 8881, section 10.4). It may
    // refuse one at any time, and Linux's does for up to a minute after it had to recall one (nfs4state.c,
    // block_delegations).
    0x6969: FileSystemKind(name: "nfs", sharing: .network, leases: .granted),
    0x00C3_6400: network("ceph"), 0xFE53_4D42: network("smb3"), 0xFF53_4D42: network("cifs"),
    0x0BD0_0BD0: network("lustre"), 0x0102_1997: network("9p"), 0x5346_414F: network("afs"),
    0x7461_636F: network("ocfs2"), 0x0116_1970: network("gfs2"), 0x4750_4653: network("gpfs"),
    0x1983_0326: network("beegfs"), 0x2003_0528: network("orangefs"),
    // MooseFS, GlusterFS, SSHFS, bindfs, virtiofs and many others.
    0x6573_5546: fuse,
  ]

  private static func local(_ name: String, lacksNoReplace: Bool = false) -> FileSystemKind {
    var kind = FileSystemKind(name: name, sharing: .local)
    kind.lacksNoReplace = lacksNoReplace
    return kind
  }
  private static func network(_ name: String) -> FileSystemKind { FileSystemKind(name: name, sharing: .network) }
}

extension FileSystemKind {
  /// The type of the file system that an open directory is on, as proc_pid_mountinfo(5) has it, which tells those apart
  /// that fuse(4) serves, such as `fuse.sshfs`; nil where /proc does not say it.
  static func mountedType(of root: Int32, _ system: System) throws(SpoolError) -> String? {
    do throws(SpoolError) {
      // proc_pid_fdinfo(5): `mnt_id:` and the number of the mount.
      let facts = try system.readProc("/proc/self/fdinfo/\(root)")
      let words = facts.split { $0 == 0x0A }.first { $0.starts(with: Array("mnt_id:".utf8)) }?.split {
        $0 == 0x09 || $0 == 0x20
      }
      guard let words, words.count == 2 else { return nil }
      return Self.mountedType(id: words[1], in: try system.readProc("/proc/self/mountinfo"))
    } catch  where [.noSuchFileOrDirectory, .permissionDenied].contains(error.errno) {
      return nil
    }
  }

  /// Each line begins with the mount's number; behind ` - ` come the type and the source.
  static func mountedType(id: some Collection<UInt8>, in table: [UInt8]) -> String? {
    for line in table.split(separator: 0x0A) {
      let words = line.split(separator: 0x20)
      guard let first = words.first, first.elementsEqual(id), let dash = words.firstIndex(where: { $0 == [0x2D] }),
        dash + 1 < words.endIndex
      else { continue }
      let type = words[dash + 1]
      let source = words.dropFirst(dash + 2).first ?? []
      let isMooseFS = type.elementsEqual("fuse".utf8) && source.starts(with: "mfs".utf8)
      return isMooseFS ? FileSystemKind.mooseFS : escaped(type)
    }
    return nil
  }
}

extension System {
  /// The whole of a file in /proc, whose status says that it is empty.
  fileprivate func readProc(_ path: String) throws(SpoolError) -> [UInt8] {
    let file = try open(AT_FDCWD, Path(path), O_RDONLY)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = try buffer.withUnsafeMutableBufferPointer { (buffer) throws(SpoolError) in
        try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: Int64(bytes.count))
      }
      if count == 0 { return bytes }
      bytes += buffer.prefix(count)
    }
  }
}

extension SpoolError {
  /// The file system cannot be reached, and may be later: the program that serves it has ended (ENOTCONN, ECONNABORTED;
  /// fuse(4)), the server does not know it any more (ESTALE; nfs(5)), or the device is gone (ENODEV).
  private static let lost: Set<Int32> = [ENOTCONN, ECONNABORTED, ESTALE, ENODEV]

  /// The same where a server or a program has the files: what they or their network say, each in its own words.
  /// sshfs(1) says EIO for whatever went wrong, a soft mount of nfs(5) EIO or ETIMEDOUT, CephFS ESHUTDOWN.
  private static let unreachable: Set<Int32> = [
    EIO, EREMOTEIO, ETIMEDOUT, ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ECONNRESET, ECONNREFUSED,
  ]

  /// Whether it may be that the file system cannot be reached at the moment.
  package func isOfLostMount(on kind: FileSystemKind) -> Bool {
    Self.lost.contains(errno.rawValue) || !kind.isLocal && Self.unreachable.contains(errno.rawValue)
  }

  /// Whether the spool's path leads to no spool at the moment.
  func isOfMissingSpool(on kind: FileSystemKind) -> Bool {
    [.noSuchFileOrDirectory, .notDirectory, .permissionDenied].contains(errno) || isOfLostMount(on: kind)
  }

  /// Errors that a single file can cause: it is immutable or append-only (chattr(1)), a mount point, a running program,
  /// or another user's in a sticky directory, or cannot be read.
  var mayConcernOneFile: Bool {
    // Not EROFS, which nearly always concerns all files: a single file that is mounted read-only says EBUSY to rename.
    isUnreadable || [.notPermitted, .resourceBusy, .textFileBusy].contains(errno)
  }

  /// What a local file system says of a single file that is damaged, or whose name would be too long. A disk that fails
  /// says the same of its directories and of what is written.
  var isOfDamagedFile: Bool {
    if call == .rename { return errno == .fileNameTooLong }
    let isRead = [.open, .read, .stat].contains(call) && path.utf8.contains(UInt8(ascii: "/"))
    return isRead && [EIO, EUCLEAN, EBADMSG].contains(errno.rawValue)
  }
}
