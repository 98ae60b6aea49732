//! Listers of kinds that are not known where they are used.

use std::{any::Any, fmt, sync::Arc};

use kube_core::{ObjectMeta, Selector};

use super::{Lister, ListerView, NamespaceLister, NamespaceView, NotFound};
use crate::Object;

/// An object of a kind that is not known where it is used: its metadata, and the object itself for who knows its type.
pub trait AnyObject: Any + Send + Sync {
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The object, to be downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> AnyObject for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for dyn AnyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.metadata();
        f.debug_struct("AnyObject")
            .field("namespace", &metadata.namespace)
            .field("name", &metadata.name)
            .finish_non_exhaustive()
    }
}

/// A [`Lister`] of a kind that is not known where it is used: `dyn GenericLister` holds one of any kind.
pub trait GenericLister: fmt::Debug + Send + Sync {
    /// As [`Lister::list`].
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>>;

    /// As [`Lister::get`].
    ///
    /// # Errors
    /// When it is not in the cache.
    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, NotFound>;

    /// As [`Lister::view`]. The view is allocated, and nothing for a look at an object.
    fn view(&self) -> Box<dyn GenericView + '_>;

    /// As [`Lister::namespace`].
    fn namespace(&self, namespace: &str) -> Box<dyn GenericNamespaceLister>;
}

/// A [`NamespaceLister`] of a kind that is not known where it is used.
pub trait GenericNamespaceLister: fmt::Debug + Send + Sync {
    /// As [`NamespaceLister::list`].
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>>;

    /// As [`NamespaceLister::get`].
    ///
    /// # Errors
    /// When it is not in the cache.
    fn get(&self, name: &str) -> Result<Arc<dyn AnyObject>, NotFound>;

    /// As [`NamespaceLister::view`]. The view is allocated, and nothing for a look at an object.
    fn view(&self) -> Box<dyn GenericView + '_>;
}

/// A [`ListerView`] or [`NamespaceView`] of a kind that is not known where it is used.
pub trait GenericView {
    /// The objects whose labels match.
    fn list(&self, selector: &Selector) -> Vec<&dyn AnyObject>;

    /// The object of a key; in the view of a namespace, of a name.
    ///
    /// # Errors
    /// When it is not in the cache.
    fn get(&self, key: &str) -> Result<&dyn AnyObject, NotFound>;
}

fn erased<K: Object>(object: Arc<K>) -> Arc<dyn AnyObject> {
    object
}

fn seen<K: Object>(object: &Arc<K>) -> &dyn AnyObject {
    &**object
}

impl<K: Object> GenericLister for Lister<K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).into_iter().map(erased).collect()
    }

    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, NotFound> {
        self.get(key).map(erased)
    }

    fn view(&self) -> Box<dyn GenericView + '_> {
        Box::new(self.view())
    }

    fn namespace(&self, namespace: &str) -> Box<dyn GenericNamespaceLister> {
        Box::new(self.namespace(namespace))
    }
}

impl<K: Object> GenericNamespaceLister for NamespaceLister<K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).into_iter().map(erased).collect()
    }

    fn get(&self, name: &str) -> Result<Arc<dyn AnyObject>, NotFound> {
        self.get(name).map(erased)
    }

    fn view(&self) -> Box<dyn GenericView + '_> {
        Box::new(self.view())
    }
}

impl<K: Object> GenericView for ListerView<'_, K> {
    fn list(&self, selector: &Selector) -> Vec<&dyn AnyObject> {
        self.list(selector).map(seen).collect()
    }

    fn get(&self, key: &str) -> Result<&dyn AnyObject, NotFound> {
        self.get(key).map(seen)
    }
}

impl<K: Object> GenericView for NamespaceView<'_, K> {
    fn list(&self, selector: &Selector) -> Vec<&dyn AnyObject> {
        self.list(selector).map(seen).collect()
    }

    fn get(&self, name: &str) -> Result<&dyn AnyObject, NotFound> {
        self.get(name).map(seen)
    }
}
