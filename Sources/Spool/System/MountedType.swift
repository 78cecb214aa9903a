internal import Glibc
internal import SystemPackage

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
