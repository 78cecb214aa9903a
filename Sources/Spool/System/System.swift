internal import Glibc
internal import SystemPackage

/// The one seam between the spool and the kernel. Every system call goes through ``call(_:_:range:repeatable:_:)``:
/// those for files by name are in NamedFiles.swift, those for open files in ``OpenFile``.
package struct System: Sendable {
  private let hook: (any CallHook)?
  let kernel: Kernel

  /// - Parameter hook: is asked before each call; nil outside of tests.
  package init(hook: (any CallHook)? = nil) { self.init(hook: hook, kernel: Kernel.shared) }

  init(hook: (any CallHook)? = nil, kernel: Kernel) { (self.hook, self.kernel) = (hook, kernel) }

  /// The path of a program in the directory of this one; nil where /proc does not say where that is.
  package static func path(ofProgramBeside name: String) -> String? {
    do throws(SpoolError) {
      let path = try System().readLink(AT_FDCWD, Path("/proc/self/exe"))
      return path.lastIndex(of: 0x2F).map { String(decoding: path[...$0], as: UTF8.self) + name }
    } catch {
      return nil
    }
  }

  /// Makes a system call, and repeats it on EINTR.
  /// - Parameters:
  ///   - path: what the call is about, escaped for display; two paths with a space between them where it takes two.
  ///   - range: the bytes of the file that a write or truncate is about.
  ///   - repeatable: false for fsync and close, where a repeat would lie.
  ///   - body: the call itself, which moves at most `limit` bytes and returns -1 with errno if it fails.
  @discardableResult func call(
    _ kind: Call.Kind, _ path: @autoclosure () -> String, range: Range<Int64>? = nil, repeatable: Bool = true,
    _ body: (_ limit: Int) -> Int
  ) throws(SpoolError) -> Int {
    while true {
      var limit = Int.max
      if let hook {
        switch hook.before(Call(kind: kind, path: path(), range: range)) {
        case .fail(.interrupted) where repeatable: continue
        case .fail(let errno): throw SpoolError(call: kind, path: path(), errno: errno)
        case .short(let length): limit = length
        case nil: break
        }
      }
      let result = body(limit)
      let errno = Errno(rawValue: Glibc.errno)
      hook?.after(Call(kind: kind, path: path(), range: range))
      if result >= 0 { return result }
      if repeatable, errno == .interrupted { continue }
      throw SpoolError(call: kind, path: path(), errno: errno)
    }
  }
}
